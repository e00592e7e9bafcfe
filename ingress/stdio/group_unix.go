//go:build unix

package stdio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

const pathSeparators = "/"

func sameVariable(a, b string) bool { return a == b }

// group is the process group of a child. Its leader is a guard: a shell that does
// nothing but wait for the end of its stdin, whose other end only the broker
// holds. When the broker dies, however it dies, the guard kills the group, itself
// included: the child, and the grandchildren a parent-death signal would not reach.
//
// The guard is there before the child and is reaped after it, so that no moment is
// unguarded and the group's number is never anybody else's.
type group struct {
	guard *exec.Cmd
	leash *os.File // the guard's stdin
	id    int      // 0 before there is a group
}

// guardScript ignores what is sent to the group and says so with an empty line.
// read and kill are built into the shell.
const guardScript = `trap '' HUP INT QUIT TERM USR1 USR2; echo; read -r _; kill -KILL 0`

const shell = "/bin/sh"

// open starts the guard. Where there is no shell the child leads a group without
// one, and unguarded is told why.
func (g *group) open(unguarded func(error)) error {
	err := g.startGuard()
	var failed *guardError
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.As(err, &failed) {
		unguarded(err)
		return nil
	}
	return err
}

// guardError: the shell is not one that can guard.
type guardError struct{ err error }

func (e *guardError) Error() string {
	return fmt.Sprintf("%s does not run the guard: %v", shell, e.err)
}

func (g *group) startGuard() error {
	leash, holder, err := os.Pipe()
	if err != nil {
		return err
	}
	defer leash.Close()
	ready, say, err := os.Pipe()
	if err != nil {
		return errors.Join(err, holder.Close())
	}
	defer ready.Close()
	guard := &exec.Cmd{
		Path: shell, Args: []string{"sh", "-c", guardScript, "mcp-broker-guard"},
		Env: []string{}, Dir: "/", Stdin: leash, Stdout: say,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	err = guard.Start()
	_ = say.Close()
	if err != nil {
		return errors.Join(err, holder.Close())
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		_ = guard.Process.Kill()
		_ = guard.Wait()
		return &guardError{errors.Join(err, holder.Close())}
	}
	g.guard, g.leash, g.id = guard, holder, guard.Process.Pid
	return nil
}

// enter puts a command that is about to start into the group.
func (g *group) enter(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id}
}

// entered: the command runs. Without a guard it leads the group.
func (g *group) entered(cmd *exec.Cmd) {
	if g.guard == nil {
		g.id = cmd.Process.Pid
	}
}

func (g *group) terminate() { g.signal(syscall.SIGTERM) }

// kill ends all of the group, the guard too.
func (g *group) kill() { g.signal(syscall.SIGKILL) }

func (g *group) signal(s syscall.Signal) {
	if g.id > 0 {
		_ = syscall.Kill(-g.id, s) // nobody there: nothing to do
	}
}

// release reaps the guard of a group that was killed.
func (g *group) release() {
	if g.guard != nil {
		_ = g.leash.Close()
		_ = g.guard.Wait()
	}
	*g = group{}
}

// executable returns path if it is a file somebody may run.
func executable(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", syscall.EISDIR
	case info.Mode()&0o111 == 0:
		return "", errNotExecutable
	}
	return path, nil
}

var errNotExecutable = errors.New("the file is not marked executable")

// checkArgs: arguments reach a program as they are.
func checkArgs(string, []string) error { return nil }

// startHint says what the system's word for a failed start means. The file was
// there a moment before.
func startHint(err error) string {
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return " (the limit of processes is reached)"
	case errors.Is(err, syscall.ENOENT):
		return " (the interpreter its first line names does not exist)"
	case errors.Is(err, syscall.ENOEXEC):
		return " (a script has to begin with #!)"
	}
	return ""
}

// exitWords says how a process ended.
func exitWords(state *os.ProcessState) ended {
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return ended("was killed by " + signalName(status.Signal()))
	}
	return ended(fmt.Sprintf("exited with code %d", state.ExitCode()))
}

// exitedByItself tells an exit from a death by a signal, which may have been ours.
func exitedByItself(state *os.ProcessState) bool { return state.Exited() }

var signalNames = map[syscall.Signal]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGILL: "SIGILL",
	syscall.SIGTRAP: "SIGTRAP", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGKILL: "SIGKILL", syscall.SIGSEGV: "SIGSEGV", syscall.SIGPIPE: "SIGPIPE", syscall.SIGALRM: "SIGALRM",
	syscall.SIGTERM: "SIGTERM", syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2", syscall.SIGSYS: "SIGSYS",
	syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ",
}

func signalName(s syscall.Signal) string {
	if name, ok := signalNames[s]; ok {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}
