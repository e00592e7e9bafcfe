package mcpbroker_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// asChild as the first argument makes the test binary an MCP server on its
// standard input and output, for brokers to start.
const asChild = "as-child"

// mcpChild is that server. Its tools are
//
//	pid     its process id
//	bump    how often it was called in this process
//	env     its environment, one variable a line
//	echo    the argument text
//	raw     the argument text as the whole result
//	big     a result of the size argument
//	touch   announces that the resource of the argument uri has changed
//	hold    answers once release is called, or notifications/release comes
//	release
//	exit    ends the process with the code argument, without an answer
type mcpChild struct {
	journal *os.File
	broken  bool
	left    int // requests until it exits; negative is never
	bumps   int
	held    []json.RawMessage // ids
	out     *bufio.Writer
}

// behave serves until its standard input ends, or does what the flags say.
func behave(args []string) {
	flags := flag.NewFlagSet(asChild, flag.ExitOnError)
	journal := flags.String("journal", "", "file to append the pid and the method of each message to")
	lifeline := flags.String("lifeline", "", "address to hold a connection to as long as the process lives")
	broken := flags.Bool("broken", false, "answer every tools/call with isError")
	exitAfter := flags.Int("exit-after", -1, "exit with code 0 after so many answers")
	exitIn := flags.Duration("exit-in", 0, "exit with code 4 after this time")
	die := flags.Int("die", -1, "exit at once with this code, and the arguments on stderr")
	stubborn := flags.Bool("stubborn", false, "ignore TERM and the end of stdin")
	_ = flags.Parse(args)
	if *die >= 0 {
		fmt.Fprintln(os.Stderr, strings.Join(flags.Args(), " "))
		os.Exit(*die)
	}
	if *exitIn > 0 {
		time.AfterFunc(*exitIn, func() { os.Exit(4) })
	}
	if *stubborn {
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
	}
	c := &mcpChild{broken: *broken, left: *exitAfter, out: bufio.NewWriter(os.Stdout)}
	if *lifeline != "" {
		conn, err := net.Dial("tcp", *lifeline)
		orDie(err)
		_, err = fmt.Fprintf(conn, "%d\n", os.Getpid())
		orDie(err)
		defer conn.Close()
	}
	if *journal != "" {
		var err error
		c.journal, err = os.OpenFile(*journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		orDie(err)
	}
	c.serve()
	if *stubborn {
		select {}
	}
}

func orDie(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

// request is what the child understands of a message.
type request struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		URI       string
		Arguments struct {
			Text, URI  string
			Size, Code int
		}
	}
}

func (c *mcpChild) serve() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		orDie(json.Unmarshal(line, &r))
		c.note(&r)
		if r.ID == nil {
			if r.Method == "notifications/release" {
				c.release()
			}
			continue
		}
		c.answer(&r)
		orDie(c.out.Flush())
		if c.left--; c.left == 0 {
			os.Exit(0)
		}
	}
}

// note keeps a line of a message before it is answered.
func (c *mcpChild) note(r *request) {
	if c.journal == nil {
		return
	}
	line := fmt.Sprint(os.Getpid(), " ", r.Method)
	if detail := r.Params.Name + r.Params.URI; detail != "" {
		line += " " + detail
	}
	_, err := c.journal.WriteString(line + "\n")
	orDie(err)
}

func (c *mcpChild) result(id json.RawMessage, result string) {
	fmt.Fprintf(c.out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}

func (c *mcpChild) text(id json.RawMessage, text string) {
	quoted, err := json.Marshal(text)
	orDie(err)
	c.result(id, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

func (c *mcpChild) answer(r *request) {
	switch r.Method {
	case "initialize":
		c.result(r.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"child","version":"1"}}`)
	case "tools/list":
		c.result(r.ID, `{"tools":[{"name":"pid","inputSchema":{"type":"object"}},{"name":"bump","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		c.call(r)
	case "ping", "resources/subscribe", "resources/unsubscribe":
		c.result(r.ID, "{}")
	default:
		fmt.Fprintf(c.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", r.ID)
	}
}

func (c *mcpChild) call(r *request) {
	args := r.Params.Arguments
	if c.broken {
		c.result(r.ID, `{"content":[{"type":"text","text":"no credentials"}],"isError":true}`)
		return
	}
	switch r.Params.Name {
	case "pid":
		c.text(r.ID, strconv.Itoa(os.Getpid()))
	case "bump":
		c.bumps++
		c.text(r.ID, strconv.Itoa(c.bumps))
	case "env":
		c.text(r.ID, strings.Join(os.Environ(), "\n"))
	case "echo":
		c.text(r.ID, args.Text)
	case "raw":
		c.result(r.ID, args.Text)
	case "big":
		c.text(r.ID, strings.Repeat("x", args.Size))
	case "touch":
		fmt.Fprintf(c.out, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q}}`+"\n", args.URI)
		c.text(r.ID, "touched")
	case "hold":
		c.held = append(c.held, r.ID)
	case "release":
		c.release()
		c.text(r.ID, "done")
	case "exit":
		os.Exit(args.Code)
	}
}

// release answers the calls that are held.
func (c *mcpChild) release() {
	for _, id := range c.held {
		c.text(id, "released")
	}
	c.held = nil
	orDie(c.out.Flush())
}
