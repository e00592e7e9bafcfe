package diagnosis

import (
	"fmt"
	"slices"
	"strings"
)

// What to do about a provider that _all leaves out, or shows in part. The reasons are
// those of the package aggregate; what a provider says stands behind the words that are
// looked for.

// admit is the fix for a provider that is not in _all.
func (d *diagnosis) admit(slot, reason string) string {
	switch {
	case begins("the slot ")(reason):
		return fmt.Sprintf("Nothing has to be done on the side of the provider: _all tries again by itself, 5s after the first failure and 5min after later ones at most. "+
			"Where the reason is that the slot has no room for a session, end sessions of %s that nobody uses, or raise maxSessionsPerSlot. If it goes on, read the log of the broker.", d.mcpURL(slot))
	case begins("initialize refused: ")(reason):
		return fmt.Sprintf("The provider answers initialize, but not with a result. Call initialize at %s to see the whole answer, and remove what it complains of: "+
			"it has to be a result with protocolVersion, capabilities and serverInfo. %s", d.mcpURL(slot), d.enterAgain(slot))
	}
	return fmt.Sprintf("_all opens a provider with initialize, then tools/list and prompts/list; call the same at %s to see which it does not answer. %s %s %s",
		d.mcpURL(slot), d.whySilent(slot), d.enterAgain(slot), d.deadline())
}

// whySilent says where to look when a provider does not answer.
func (d *diagnosis) whySilent(slot string) string {
	i := d.instance(slot)
	switch {
	case i == nil:
		return "A provider has to install its message handler before it connects, and to answer initialize with a result."
	case isProcess(i):
		return fmt.Sprintf("Run %s for what it wrote to standard error: it may wait for something, or for input that is not MCP.", command("logs", slot))
	}
	return fmt.Sprintf("Read the log of the server at %s, and see that nothing in between holds its answers back.", i.Target)
}

// enterAgain says how a provider that has been mended comes to be greeted again.
func (d *diagnosis) enterAgain(slot string) string {
	if d.managed(slot) {
		return fmt.Sprintf("Then run %s: it is greeted anew with each connection.", command("restart", slot))
	}
	return "Then connect it again: membership is decided anew with each connection."
}

// shortfalls are the reasons for which a list is not complete, and what helps.
var shortfalls = []struct {
	in     func(problem string) bool
	remedy string
}{
	{holds("/list failed: "), "A list that the provider declares has to be answered with a result, an empty list included; one that it has not is left out of the capabilities in its answer to initialize. Where it did not answer in time, _all asks again by itself."},
	{holds(" ended early: the result has no array of "), "The result of a list has to be an object that holds the array itself, as in {\"tools\":[]}, also where nothing is in it."},
	{holds(" are left out"), "Give each entry a name: a string that is not empty, under the key that the reason tells. The others are shown."},
	{holds(" ended early: the provider repeats a cursor ", " pages"), "The provider has to end each list with a page without nextCursor, and never to repeat a cursor."},
	{holds(" ended early: "), "That is the most _all takes of one list, or of all lists together: let the provider publish less, or divide it among several slots. What is left out can be used on the slot itself."},
}

// complete is the fix for a member whose lists are not all there.
func (d *diagnosis) complete(slot, reason string) string {
	var remedies []string
	for _, problem := range strings.Split(reason, "; ") {
		for _, s := range shortfalls {
			if !s.in(problem) {
				continue
			}
			if !slices.Contains(remedies, s.remedy) {
				remedies = append(remedies, s.remedy)
			}
			break
		}
	}
	again := "or connects again"
	if d.managed(slot) {
		again = "or is started again with " + command("restart", slot)
	}
	return fmt.Sprintf("Call the list that the reason names at %s and compare. %s"+
		"_all lists the provider anew once it sends the list_changed notification of that list, as notifications/tools/list_changed, %s.",
		d.mcpURL(slot), strings.Join(append(remedies, ""), " "), again)
}
