package command

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tree is a command with all that it starts: a job object, which ends as a whole. What the command starts before it was
// added stays outside, and ends with the hub.
type tree struct{ job windows.Handle }

func newTree() (*tree, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make job object: %w", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
		LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
	}}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		_ = windows.CloseHandle(job)
		return nil, fmt.Errorf("set up job object: %w", err)
	}
	return &tree{job}, nil
}

func (t *tree) add(p *os.Process) {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil {
		return // it has ended
	}
	_ = windows.AssignProcessToJobObject(t.job, h)
	_ = windows.CloseHandle(h)
}

func (t *tree) end() {
	_ = windows.TerminateJobObject(t.job, 1)
	_ = windows.CloseHandle(t.job)
}

func signalOf(state *os.ProcessState) string { return state.String() }
