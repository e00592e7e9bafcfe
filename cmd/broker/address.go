package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"mcpbroker/config"
	"mcpbroker/egress/bridge"
)

// envURL names the broker that commands ask and bridges lead to.
const envURL = "MCP_BROKER_URL"

// address says where a broker is.
type address struct {
	base string // http://127.0.0.1:3000, as it stands in messages
	mcp  string // suffix of Streamable HTTP, with its slash
	cert string // PEM file to trust besides what the machine trusts, empty for none
}

// urlFlag is --url. Where it is absent, see program.address.
func urlFlag() cli.Flag {
	return &cli.StringFlag{Name: "url", Usage: "`URL` of the broker, http or https; default: " + envURL + ", else the address of the configuration"}
}

// address finds the broker: by the flag, else by MCP_BROKER_URL, else by the
// configuration that 'broker run' would read here.
func (p *program) address(flag string) (address, error) {
	if flag != "" {
		return address{base: flag, mcp: "/mcp"}.checked()
	}
	if env := p.getenv(envURL); env != "" {
		at, err := address{base: env, mcp: "/mcp"}.checked()
		if err != nil {
			return at, fmt.Errorf("%s: %w", envURL, err)
		}
		return at, nil
	}
	cfg, err := config.Load(config.Source{Environ: p.environ})
	if err != nil {
		return address{}, fmt.Errorf("the configuration does not say where the broker is; name it with --url or %s\n%w", envURL, err)
	}
	if cfg.Port == 0 {
		return address{}, fmt.Errorf("the configuration lets the broker take any free port; name its address with --url or %s", envURL)
	}
	return configured(cfg), nil
}

// configured is where a broker with this configuration listens.
func configured(cfg *config.Config) address {
	at := address{
		base: cfg.Scheme() + "://" + net.JoinHostPort(clientHost(cfg), strconv.Itoa(cfg.Port)),
		mcp:  cfg.Paths.MCP,
	}
	if cfg.Scheme() == config.ProtocolHTTPS {
		at.cert = cfg.TLS.Cert
	}
	return at
}

// clientHost is the name under which this machine reaches the listener. A
// certificate for this machine names localhost rather than an address.
func clientHost(cfg *config.Config) string {
	switch host := cfg.Host; {
	case host == "::":
		return "localhost"
	case cfg.Scheme() == config.ProtocolHTTPS && (host == "" || host == "0.0.0.0" || host == "127.0.0.1" || host == "::1"):
		return "localhost"
	case host == "" || host == "0.0.0.0":
		return "127.0.0.1"
	default:
		return host
	}
}

// checked refuses what cannot be the URL of a broker.
func (a address) checked() (address, error) {
	_, err := bridge.Endpoint(a.base, "s")
	a.base = strings.TrimRight(a.base, "/")
	return a, err
}

// endpoint is the Streamable HTTP endpoint of a slot.
func (a address) endpoint(slot string) (string, error) {
	u, err := bridge.Endpoint(a.base, slot)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(u, "/mcp") + a.mcp, nil
}

// getenv returns a variable, empty when it is unset or blank.
func (p *program) getenv(name string) string {
	value := ""
	for _, entry := range p.environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = strings.TrimSpace(v)
		}
	}
	return value
}
