package guard

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

func detach(*exec.Cmd) {}

func term(int) {}

func kill(int) {}

func alive(int) bool { return false }

// jobs is a job object that ends all its processes when the last handle to it is closed, which the system does when the
// parent ends, however it ends. Processes that a child starts belong to the job too.
type jobs struct {
	mu  sync.Mutex
	job windows.Handle
}

func (j *jobs) open() (bool, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return true, fmt.Errorf("make job object: %w", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
		LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
	}}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return true, fmt.Errorf("set up job object: %w", err)
	}
	j.job = job
	return true, nil
}

// add puts a child into the job. What it has started before that stays outside.
func (j *jobs) add(p *os.Process) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.job == 0 {
		return
	}
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil {
		return
	}
	_ = windows.AssignProcessToJobObject(j.job, h)
	_ = windows.CloseHandle(h)
}

func (j *jobs) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.job != 0 {
		_ = windows.CloseHandle(j.job)
		j.job = 0
	}
}

// OwnGroup gives the child a process group of its own, so that a Ctrl-C in the hub's console does not reach it.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// TermGroup does nothing: Windows has no signal that asks a process without a window to end. Closed stdin was the
// request.
func TermGroup(*exec.Cmd) {}

// KillGroup ends the child and its descendants.
func KillGroup(cmd *exec.Cmd) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	_ = cmd.Process.Kill() // fails only where it has ended
}
