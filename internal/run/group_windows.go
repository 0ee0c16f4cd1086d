package run

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

func detach(*exec.Cmd) {}

func term(int) {}

func kill(int) {}

func alive(int) bool { return false }

// byProcess says that a guard is a process.
const byProcess = false

// job is a job object with a child and all that it starts. They end when the last handle to it is closed, which the
// system does when the parent ends, however it ends. What a child has started before it was added stays outside.
type job struct{ handle windows.Handle }

// newJob puts a child into a job of its own. Where the system refuses that, the child outlives a parent that is killed.
func newJob(p *os.Process) job {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return job{}
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
		LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
	}}
	_, err = windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	child, openErr := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil || openErr != nil { // it has ended, for example
		_ = windows.CloseHandle(handle)
		return job{}
	}
	_ = windows.AssignProcessToJobObject(handle, child)
	_ = windows.CloseHandle(child)
	return job{handle}
}

// end ends what is in the job.
func (j job) end() {
	if j.handle != 0 {
		_ = windows.TerminateJobObject(j.handle, 1)
		_ = windows.CloseHandle(j.handle)
	}
}

// OwnGroup gives the child a process group of its own, so that a Ctrl-C in the hub's console does not reach it.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// termGroup does nothing: Windows has no signal that asks a process without a window to end. Closed stdin was the
// request.
func termGroup(*exec.Cmd) {}

// KillGroup ends the child and its descendants.
func KillGroup(cmd *exec.Cmd) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	_ = cmd.Process.Kill() // fails only where it has ended
}
