//go:build unix

package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
)

// behave is a child of the tests. It never returns without having done what its
// name says.
func behave(behaviour string, args []string) {
	switch behaviour {
	case "echo":
		echo()
	case "print": // the arguments are Go strings
		for _, arg := range args {
			text, err := strconv.Unquote(arg)
			must(err)
			_, err = os.Stdout.WriteString(text)
			must(err)
		}
		echo()
	case "bytewise":
		for _, b := range []byte(args[0] + "\n") {
			_, err := os.Stdout.Write([]byte{b})
			must(err)
		}
		echo()
	case "flood":
		line := strings.Repeat("x", 63) + "\n"
		for range (256 << 10) / len(line) {
			fmt.Fprint(os.Stderr, line)
		}
		fmt.Fprintln(os.Stderr, "the last line")
		echo()
	case "exit":
		fmt.Fprint(os.Stderr, args[1])
		code, err := strconv.Atoi(args[0])
		must(err)
		os.Exit(code)
	case "usage":
		fmt.Println("usage: server [flags]")
		os.Exit(2)
	case "killed":
		n, err := strconv.Atoi(args[0])
		must(err)
		signal.Reset()
		must(syscall.Kill(os.Getpid(), syscall.Signal(n)))
		rest()
	case "sizes":
		sizes(args[0])
	case "place":
		dir, err := os.Getwd()
		must(err)
		place, err := json.Marshal(map[string]any{"args": os.Args, "env": os.Environ(), "dir": dir})
		must(err)
		fmt.Println(string(place))
		echo()
	case "speaker":
		fmt.Fprintln(os.Stderr, "I am here")
		echo()
	case "deaf":
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/deaf"}`)
		rest()
	case "sulks":
		sulks(args[0])
	case "mute":
		must(os.Stdout.Close())
		rest()
	case "closes": // its stdout, and reports on what happens then
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		must(os.Stdout.Close())
		_, err := io.Copy(io.Discard, os.Stdin)
		must(err)
		fmt.Fprintln(os.Stderr, "end of stdin")
		<-term
		fmt.Fprintln(os.Stderr, "TERM")
	case "bequeaths": // a child of its own that ends with TERM
		binary, err := os.Executable()
		must(err)
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), asChild+"=terminable")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		must(cmd.Start())
		_, err = bufio.NewReader(os.Stdin).ReadBytes('\n')
		must(err)
		os.Exit(3)
	case "terminable":
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println(`{"method":"up"}`)
		<-term
		fmt.Fprintln(os.Stderr, "TERM")
	case "reluctant": // says that it was told to end, and does not
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println(`{"method":"up"}`)
		<-term
		fmt.Fprintln(os.Stderr, "TERM")
		rest()
	case "stubborn":
		stubborn(args[0])
	case "family":
		family(args[0])
	case "leaver": // a parent that goes before its child does
		family(args[0], "leave")
	case "broker":
		broker(args[0])
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

// rest waits to be killed.
func rest() { time.Sleep(10 * time.Minute) }

// reply answers a request with itself, and initialize as a server does.
func reply(id json.RawMessage, method string, line []byte) {
	result := bytes.TrimRight(line, "\n")
	if method == "initialize" {
		result = []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"echo","version":"1"}}`)
	}
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}

// echo answers each request, and ends with its stdin.
func echo() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		must(err)
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		must(json.Unmarshal(line, &request))
		if request.ID != nil {
			reply(request.ID, request.Method, line)
		}
	}
}

// sulks is an echo that writes down what it hears. The first one in a directory stops
// answering behind the call of "one", hears one line more, and says when another one
// has begun to come.
func sulks(dir string) {
	first, err := os.OpenFile(dir+"/first", os.O_CREATE|os.O_EXCL, 0o600)
	isFirst := err == nil
	_ = first.Close() // of nil too
	heard, err := os.OpenFile(dir+"/heard", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(err)
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		must(err)
		_, err = heard.Write(line)
		must(err)
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		must(json.Unmarshal(line, &request))
		if request.ID != nil {
			reply(request.ID, request.Method, line)
		}
		if isFirst && request.Params.Name == "one" {
			sulk(in, heard)
		}
	}
}

func sulk(in *bufio.Reader, heard io.Writer) {
	line, err := in.ReadBytes('\n')
	must(err)
	_, err = heard.Write(line)
	must(err)
	_, err = in.ReadByte()
	must(err)
	fmt.Println(`{"jsonrpc":"2.0","method":"notifications/begun"}`)
	rest()
}

// sizes answers each request {"id":...,"params":{"size":n}} with a line of n bytes,
// the id in front or at the end.
func sizes(where string) {
	in := json.NewDecoder(os.Stdin)
	for {
		var request struct {
			ID     json.RawMessage
			Params struct{ Size int }
		}
		if err := in.Decode(&request); err == io.EOF {
			return
		} else {
			must(err)
		}
		before, after := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":"`, request.ID), `"}`
		switch where {
		case "last":
			before, after = `{"result":"`, fmt.Sprintf(`","jsonrpc":"2.0","id":%s}`, request.ID)
		case "nowhere":
			before = `{"jsonrpc":"2.0","result":"`
		}
		padding := strings.Repeat("x", request.Params.Size-len(before)-len(after))
		_, err := os.Stdout.WriteString(before + padding + after + "\n")
		must(err)
	}
}

// hold keeps a FIFO open for writing as long as the process lives, and writes one
// byte to it.
func hold(fifo string) {
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	must(err)
	_, err = f.Write([]byte{'!'})
	must(err)
	held = f
}

var held *os.File // not to be collected

// stubborn ends by nothing but KILL.
func stubborn(fifo string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	hold(fifo)
	rest()
}

// family is a wrapper: it starts a stubborn child, and is stubborn itself.
func family(fifo string, leave ...string) {
	binary, err := os.Executable()
	must(err)
	cmd := exec.Command(binary, fifo)
	cmd.Env = append(os.Environ(), asChild+"=stubborn")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	must(cmd.Start())
	if len(leave) > 0 {
		signal.Ignore(syscall.SIGPIPE)
		in := bufio.NewReader(os.Stdin)
		_, err := in.ReadBytes('\n')
		must(err)
		os.Exit(3)
	}
	stubborn(fifo)
}

// broker holds a family until it is killed itself.
func broker(fifo string) {
	sys := rt.NewSystem(slog.New(slog.NewTextHandler(os.Stderr, nil)), nil)
	owner := make(inbox, room)
	binary, err := os.Executable()
	must(err)
	New(sys).Start(Config{Name: "s", Command: binary, Args: []string{fifo}, Env: []string{asChild + "=family"}}, owner, 1)
	opened, ok := (<-owner).(*msg.UpstreamOpened)
	if !ok {
		os.Exit(98)
	}
	fmt.Println(opened.Driver.(*child).group.id)
	rest()
}
