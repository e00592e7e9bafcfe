// Package scenarios runs scripted scenarios against a real broker: it starts a
// broker, connects providers and clients, makes things go wrong, and says whether
// everybody saw what the script expects. Narration, the broker's log and what the
// providers see are written as one story that ends with a verdict:
//
//	 0.0   8. Provider B wants the slot while A is alive.
//	 0.0      * B: open
//	 0.0      | [broker] WARNING: WebSocket provider "demo" rejected: ...
//	 0.0      * B: closed 1008 "Slot already held by a live provider; ..."
//	PASS provider-lifecycle (31 steps, 30.2 s)
//
// Lines with a number are narration, lines with a bar the broker's log verbatim,
// lines with a star what a provider saw.
//
// # Scripts
//
// A script is a TOML file: title, summary (one line, for lists), teaches (written
// before the verdict), variables, and steps that run in their order.
//
//	title = "a slot and its provider"
//
//	[vars]
//	heartbeat = 2000
//
//	[[step]]
//	say = "The broker starts."
//	broker = "start"
//
//	[[step]]
//	connect = "A"
//	slot = "demo"
//
//	[[step]]
//	expect_log = 'role=dedicated-provider slot="demo"'
//
// A step has at most one line of narration, say, and exactly one action; the
// other keys belong to the action. docs/scenarios.md lists them all. Every
// mistake in a script is reported, with its line, before anything starts.
//
// ${name} stands for a variable; a string that is nothing else takes its type.
// Two variables always exist: port (default 3300) and heartbeat (milliseconds,
// default 5000). A length of time is written "1.5s", "300ms" or, as a multiple of
// the heartbeat, "0.6 heartbeats". Expectations wait 10 s unless within says
// otherwise.
//
// # Brokers
//
// broker = "start" runs the broker binary as a child process on 127.0.0.1, with
// the heartbeat of the script and the keys of config; variables MCP_BROKER_* of
// the environment do not reach it. With embedded = true the broker runs in the
// runner's process instead, where crash can make a slot fail and expect_slot can
// look into it.
//
// # Providers
//
// connect makes a provider. Transports direct and multiplex are those of package
// provider, with a server whose tools are whoami (returns the provider's name),
// echo (returns its argument text) and hold, whose calls are for the script:
// receive takes one, answer and report answer it and report progress, at any
// time or never. Transport loopback is the same in the process of an embedded
// broker. Transport raw is a WebSocket that sends what the script says and nothing
// else.
//
// A provider's events are taken in order: connect takes the open, expect_close
// the close that follows. Who expects an open therefore proves that it came
// before the refusal. A direct or multiplexed provider has its claim decided
// before connect and expect_open end, so that the next step can rely on it.
//
// # Sessions
//
// session makes a client, which says initialize as any client does. Transports are
// http, sse, ws and stdio: newline-delimited JSON-RPC to a process, which is
// broker bridge, or the broker of the script if its config has stdioProvider.
// Answers and progress go to the call they belong to; expect_message takes the
// other messages in their order, and expect_tools passes over them until one tells
// that the tools changed.
//
// # Programs
//
// program starts a program, such as a device built from the library in firmware/,
// and expect_line waits for what it writes, line by line. Everything it needs is
// looked for before anything starts.
//
// # Files and processes
//
// Everything of a script lives in a scratch folder that is removed at the end.
// file writes a file into it, run runs a command there to its end, and a program
// with scratch = true runs there. kill ends a program, or the process of an
// upstream, which the broker is asked for. ${broker} is the path of the broker's
// program, which serves as an upstream, too; ${next_port} is a port for it.
//
// # Logs
//
// expect_log looks at the lines since the last step that did something (steps
// named expect_, receive, await and wait only look), or at all lines with
// since = "start". A list must be found in one line.
package scenarios
