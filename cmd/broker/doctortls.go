package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"mcpbroker/config"
)

// expirySoon is when a certificate is worth a warning.
const expirySoon = 30 * 24 * time.Hour

// tls checks certificate and key.
func (f *findings) tls(cfg *config.Config, now time.Time) {
	const check = "TLS"
	if cfg.Scheme() != config.ProtocolHTTPS {
		f.ok(check, "off")
		return
	}
	pair, err := cfg.TLS.Pair()
	var unreadable *fs.PathError
	if errors.As(err, &unreadable) {
		f.fail(check, err.Error(), "correct tls.cert and tls.key, or let this user read the files")
		return
	}
	if err != nil {
		f.fail(check, fmt.Sprintf("%s and %s do not go together: %v", cfg.TLS.Cert, cfg.TLS.Key, err),
			"use a PEM certificate chain, the broker's own first, and the private key it was made for")
		return
	}
	f.certificate(cfg, pair.Leaf, now)
	if info, err := os.Stat(cfg.TLS.Key); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		f.warn(check, fmt.Sprintf("%s can be read by other users (mode %04o)", cfg.TLS.Key, info.Mode().Perm()), "chmod 600 "+cfg.TLS.Key)
	}
}

func (f *findings) certificate(cfg *config.Config, leaf *x509.Certificate, now time.Time) {
	const check, renew = "TLS", "renew the certificate and restart the broker"
	names := leaf.DNSNames
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	left := leaf.NotAfter.Sub(now)
	until := leaf.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case now.Before(leaf.NotBefore):
		f.fail(check, fmt.Sprintf("the certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339)), "check the clock of this machine, or wait")
	case left <= 0:
		f.fail(check, "the certificate expired on "+until, renew)
	case left < expirySoon:
		f.warn(check, fmt.Sprintf("the certificate expires in %s, on %s", age(left), until), renew)
	default:
		f.ok(check, fmt.Sprintf("certificate for %s, valid until %s; key matches", strings.Join(names, ", "), until))
	}
	host := clientHost(cfg)
	switch err := leaf.VerifyHostname(host); {
	case len(names) == 0:
		f.warn(check, "the certificate has no subject alternative names: no current client accepts it", "make one with subjectAltName")
	case err != nil && net.ParseIP(host) == nil:
		f.warn(check, fmt.Sprintf("the certificate is not for %q", host), "reach the broker under one of its names: "+strings.Join(names, ", "))
	}
}
