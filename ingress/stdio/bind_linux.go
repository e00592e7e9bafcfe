package stdio

import "syscall"

// bindToBroker has the kernel kill a process when the thread that starts it ends. That
// thread has to be one that lives as long as the process.
func bindToBroker(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
