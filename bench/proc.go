package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc, the same on every Linux platform that
// Go supports.
const tick = time.Second / 100

// cpuTime is the CPU time a process has used so far, user and system, in steps
// of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	return parseCPUTime(stat)
}

func parseCPUTime(stat []byte) (time.Duration, error) {
	// The second field, the command's name, may hold spaces and parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const utime, stime = 11, 12
	if len(fields) <= stime {
		return 0, fmt.Errorf("CPU time: unexpected content %q", stat)
	}
	user, err := strconv.ParseInt(string(fields[utime]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	system, err := strconv.ParseInt(string(fields[stime]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	return time.Duration(user+system) * tick, nil
}

// residentMemory is the resident set of a process in bytes. It reads
// smaps_rollup because the counters in status lag by up to 32 pages per CPU.
func residentMemory(pid int) (int64, error) {
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, fmt.Errorf("resident memory: %w", err)
	}
	return parseResident(rollup)
}

func parseResident(rollup []byte) (int64, error) {
	for line := range strings.Lines(string(rollup)) {
		if size, found := strings.CutPrefix(line, "Rss:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("resident memory: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("resident memory: unexpected content %q", rollup)
}

// machine describes where and with what a measurement was made.
func machine() string {
	model, kernel := runtime.GOARCH, runtime.GOOS
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel += " " + strings.TrimSpace(string(release))
	}
	return fmt.Sprintf("%s, %d CPUs, %s, %s", model, runtime.NumCPU(), kernel, runtime.Version())
}
