//go:build !race

package egress_test

// raceDetector says that the test binary checks for races, which makes it slow.
const raceDetector = false
