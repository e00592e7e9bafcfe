//go:build unix

package stdio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

const pathSeparators = "/"

func sameVariable(a, b string) bool { return a == b }

// group is the process group of a child. The child leads it, in a session of its own:
// it has no terminal that could stop it, or whose keys could reach it.
//
// Beside it a guard runs: a shell that does nothing but wait for the end of its stdin,
// whose other end only the broker holds. When the broker dies, however it dies, the
// guard kills the group: the child, and the grandchildren a parent-death signal would
// not reach. The guard is there before the child and is ended after it. It learns the
// group's number once the child runs; until then bindToBroker answers for the child.
type group struct {
	guard  *exec.Cmd
	leash  *os.File        // the guard's stdin
	id     int             // 0 before there is a group
	exited <-chan struct{} // closed once the child, whose number the group has, was waited for
}

// guardScript says with an empty line that it ignores signals. What it reads is the
// number of the group, and then the end of the broker. read and kill are built into
// the shell.
const guardScript = `trap '' HUP INT QUIT TERM USR1 USR2; echo; read -r id; read -r _; [ -z "$id" ] || kill -KILL "-$id"`

const shell = "/bin/sh"

// open starts the guard. Where there is no shell the group goes without, and unguarded
// is told why.
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
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
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
	g.guard, g.leash = guard, holder
	return nil
}

// enter makes a command that is about to start the leader of a group and a session.
// setsid does so by itself: made one already, it would leave its command to a process
// nobody knows, and end.
func (g *group) enter(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: filepath.Base(cmd.Path) != "setsid"}
	bindToBroker(cmd.SysProcAttr)
}

// entered: the command runs. exited is closed once it was waited for.
func (g *group) entered(cmd *exec.Cmd, exited <-chan struct{}) {
	g.id, g.exited = cmd.Process.Pid, exited
	if g.guard != nil {
		_, _ = fmt.Fprintln(g.leash, g.id) // a guard that is gone guards nothing
	}
}

func (g *group) terminate() { g.signal(syscall.SIGTERM) }

func (g *group) kill() { g.signal(syscall.SIGKILL) }

// signal reaches all of the group, and the child that has not made it yet. Once the child
// was waited for, its number may be somebody else's; as long as the group has members
// nobody is given it.
func (g *group) signal(s syscall.Signal) {
	if g.id == 0 {
		return
	}
	waited := g.waited()
	if waited && !errors.Is(syscall.Kill(g.id, 0), syscall.ESRCH) {
		return
	}
	if err := syscall.Kill(-g.id, s); errors.Is(err, syscall.ESRCH) && !waited {
		_ = syscall.Kill(g.id, s)
	}
}

// left reports that the group has members.
func (g *group) left() bool {
	if g.id == 0 || g.waited() && !errors.Is(syscall.Kill(g.id, 0), syscall.ESRCH) {
		return false
	}
	return !errors.Is(syscall.Kill(-g.id, 0), syscall.ESRCH)
}

func (g *group) waited() bool { return closed(g.exited) }

// release ends the guard of a group that was killed.
func (g *group) release() {
	if g.guard != nil {
		_ = g.guard.Process.Kill() // before it sees the end of its stdin
		_ = g.guard.Wait()
		_ = g.leash.Close()
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
