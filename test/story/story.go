// Package story reads what kubectl describe tells of a PodCliqueSet: what happened, and when.
// It runs nothing.
package story

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// slack is how far the clocks of a cluster and of kubectl, which counts in whole seconds,
	// may differ.
	slack = 2 * time.Second
	// nothing begins what must not be told.
	nothing = "no "
)

var (
	column = regexp.MustCompile(`\s{2,}`)
	// age begins the age of an event; "(x2 over 3s)" may follow.
	age = regexp.MustCompile(`^[0-9a-z]+`)
)

// Story is what a description tells, each thing on one line of words:
//
//	Phase: Running
//	Restarting=False ReplicaRestarted: MESSAGE
//	replica 0: attempt 1, Running
//	replica 1: attempt 0, Running, waits for worker Ready 1/2
//	Warning PodFailed: MESSAGE
type Story struct {
	lines  []line
	fields map[string]string
}

type line struct {
	text string
	// at is when it happened; zero for what is so now.
	at time.Time
	// isEvent says that kubectl tells an age of it, not a time.
	isEvent bool
}

// Read reads a description of one set that was made now. It fails where a condition, an event
// or a phase has no time, or an impossible one.
func Read(description string, now time.Time) (*Story, error) {
	s := &Story{fields: map[string]string{}}
	status, events, found := strings.Cut(description, "\nEvents:")
	if !found {
		return nil, errors.New("there are no events, not even none")
	}
	head, status, found := strings.Cut(status, "\nStatus:\n")
	if !found {
		return nil, errors.New("there is no status")
	}
	made, err := time.Parse(time.RFC3339, fieldOf(head, "Creation Timestamp"))
	if err != nil {
		return nil, fmt.Errorf("when it was made: %w", err)
	}
	s.readStatus(status)
	for _, row := range strings.Split(events, "\n") {
		s.readEvent(row, now)
	}
	return s, s.checkTimes(made, now)
}

// fieldOf is the value of a field of a description, which begins a line.
func fieldOf(text, name string) string {
	for _, row := range strings.Split(text, "\n") {
		if value, found := strings.CutPrefix(strings.TrimSpace(row), name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// readStatus reads fields, and the lists of conditions and replicas. kubectl sorts fields by
// name and does not say where an entry of a list ends: it does before its first field is repeated.
func (s *Story) readStatus(text string) {
	section, first := "", ""
	var entry map[string]string
	flush := func() {
		switch {
		case len(entry) == 0:
		case section == "Conditions":
			at, _ := time.Parse(time.RFC3339, entry["Last Transition Time"])
			s.lines = append(s.lines, line{text: fmt.Sprintf("%s=%s %s: %s", entry["Type"], entry["Status"], entry["Reason"], entry["Message"]), at: at})
		case section == "Replica Statuses":
			s.lines = append(s.lines, line{text: replicaOf(entry)})
		}
		entry = map[string]string{}
	}
	for _, row := range strings.Split(text, "\n") {
		name, value, _ := strings.Cut(strings.TrimSpace(row), ":")
		value = strings.TrimSpace(value)
		indent := len(row) - len(strings.TrimLeft(row, " "))
		switch {
		case indent == 2:
			flush()
			section, first = name, ""
			if value != "" {
				s.fields[name] = value
				s.lines = append(s.lines, line{text: name + ": " + value})
			}
			continue
		case first == "":
			first = name
		case indent == 4 && name == first:
			flush()
		}
		if indent == 6 {
			name = "Waiting For " + name
		}
		entry[name] = value
	}
	flush()
}

func replicaOf(entry map[string]string) string {
	text := fmt.Sprintf("replica %s: attempt %s, %s", entry["Index"], entry["Attempt"], entry["Phase"])
	status := entry["Waiting For Status"]
	if status == "" {
		return text
	}
	text += ", waits for"
	if clique := entry["Waiting For Clique"]; clique != "" {
		text += " " + clique
	}
	text += fmt.Sprintf(" %s %s/%s", status, entry["Waiting For Have"], entry["Waiting For Want"])
	if message := entry["Waiting For Message"]; message != "" {
		text += ": " + message
	}
	return text
}

// readEvent reads a row of the table of events: type, reason, age, who tells it, message.
func (s *Story) readEvent(row string, now time.Time) {
	columns := column.Split(strings.TrimSpace(row), 5)
	if len(columns) < 5 || columns[0] == "Type" || strings.HasPrefix(columns[0], "--") {
		return
	}
	told := line{text: fmt.Sprintf("%s %s: %s", columns[0], columns[1], columns[4]), isEvent: true}
	if ago, err := time.ParseDuration(age.FindString(columns[2])); err == nil {
		told.at = now.Add(-ago)
	}
	s.lines = append(s.lines, told)
}

// checkTimes says what has no time, or one at which the set was not there.
func (s *Story) checkTimes(made, now time.Time) error {
	impossible := func(at time.Time) bool { return at.Before(made.Add(-slack)) || at.After(now.Add(slack)) }
	var errs []error
	for _, l := range s.lines {
		isCondition := strings.Contains(strings.SplitN(l.text, " ", 2)[0], "=")
		if (l.isEvent || isCondition) && impossible(l.at) {
			errs = append(errs, fmt.Errorf("%q: the time is %v", l.text, l.at))
		}
	}
	need := map[string][]string{"Running": {"Start Time"}, "Succeeded": {"Start Time", "Completion Time"}, "Failed": {"Completion Time"}}
	for _, name := range need[s.fields["Phase"]] {
		if at, err := time.Parse(time.RFC3339, s.fields[name]); err != nil || impossible(at) {
			errs = append(errs, fmt.Errorf("%s is %q in phase %s", name, s.fields[name], s.fields["Phase"]))
		}
	}
	return errors.Join(errs...)
}

// Tells says which of several lines the story lacks. A line is a whole one, in which * stands
// for any text; behind "no " it must not be told. Events are told in this order, to the second.
func (s *Story) Tells(want ...string) error {
	var errs []error
	var last line
	for _, text := range want {
		pattern, isNone := strings.CutPrefix(text, nothing)
		whole := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
		i := slices.IndexFunc(s.lines, func(l line) bool { return whole.MatchString(l.text) })
		switch {
		case isNone && i >= 0:
			errs = append(errs, fmt.Errorf("it tells %q", s.lines[i].text))
		case isNone:
		case i < 0:
			errs = append(errs, fmt.Errorf("it does not tell %q", text))
		case !s.lines[i].isEvent:
		case last.at.After(s.lines[i].at.Add(slack)):
			errs = append(errs, fmt.Errorf("it tells %q, of before %q", text, last.text))
		default:
			last = s.lines[i]
		}
	}
	return errors.Join(errs...)
}
