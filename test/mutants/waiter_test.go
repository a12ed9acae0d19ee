package mutants

const waiter = "cmd/start-gate/app/"

// waiterMutants are mistakes of the program in the pods: each of them lets a pod start too
// early, never, or hurts the API server.
func waiterMutants() map[string]mutant {
	return map[string]mutant{
		"waiter: what was opened for another attempt lets pass": {
			file: waiter + "decision.go", old: "o.entry != nil && o.entry.attempt == p.attempt", new: "o.entry != nil",
		},
		"waiter: a later attempt lets the pods of the past pass": {
			file: waiter + "decision.go", old: "o.entry.attempt == p.attempt", new: "o.entry.attempt >= p.attempt",
		},
		"waiter: the end of another attempt fails the pod": {
			file: waiter + "decision.go", old: "case own && o.entry.expired:", new: "case o.entry != nil && o.entry.expired:",
		},
		"waiter: it gives up with the gang's own deadline": {
			file: waiter + "decision.go", old: "o.started.Add(p.timeout + more)", new: "o.started.Add(p.timeout)",
		},
		"waiter: it gives up before the file can be there": {
			file: waiter + "decision.go", old: "max(p.timeout, fileDelay)", new: "max(p.timeout, 0*fileDelay)",
		},
		"waiter: it gives up though it reads its gate": {
			file: waiter + "decision.go", old: "if p.timeout == 0 || o.reading {", new: "if p.timeout == 0 {",
		},
		"waiter: it gives up without a deadline": {
			file: waiter + "decision.go", old: "if p.timeout == 0 || o.reading {", new: "if o.reading {",
		},
		"waiter: a short outage late in the wait fails the pod": {
			file: waiter + "decision.go", old: "		deadline = later\n", new: "		_ = later\n",
		},
		"waiter: the line of another attempt lets pass": {
			file: waiter + "file.go", old: "bytes.Equal(bytes.TrimRight(line, \"\\r\\n\"), want)", new: "bytes.HasPrefix(line, want)",
		},
		"waiter: a gate of somebody else counts": {
			file: waiter + "gate.go", old: "e.Object.Metadata.Name != gate || ", new: "",
		},
		"waiter: a gate of another namespace counts": {
			file: waiter + "gate.go", old: " || e.Object.Metadata.Namespace != namespace", new: "",
		},
		"waiter: a deleted gate stays what it was": {
			file: waiter + "gate.go", old: "e.Type == \"DELETED\" || ", new: "",
		},
		"waiter: the token of the start is kept": {
			file: waiter + "connection.go", old: "	token, err := os.ReadFile(filepath.Join(s.folder, \"token\"))\n", new: "	token, err := []byte(\"first\"), error(nil)\n	if s.client == nil {\n		token, err = os.ReadFile(filepath.Join(s.folder, \"token\"))\n	}\n",
		},
		"waiter: the authority of the start is kept": {
			file: waiter + "connection.go", old: "if s.client == nil || !bytes.Equal(authority, s.authority) {", new: "if s.client == nil || len(authority) == 0 && bytes.Equal(authority, s.authority) {",
		},
		"waiter: it follows redirects": {
			file: waiter + "connection.go", old: "return http.ErrUseLastResponse", new: "return nil",
		},
		"waiter: it trusts a connection that is silent": {
			file: waiter + "connection.go", old: "SendPingTimeout: pingAfter, ", new: "",
		},
		"waiter: it waits for an answer for as long as a watch lasts": {
			file: waiter + "connection.go", old: "			ResponseHeaderTimeout: answerTimeout,\n", new: "",
		},
		"waiter: all waiters come back at once": {
			file: waiter + "watch.go", old: "Jitter: 2, ", new: "",
		},
		"waiter: its pauses do not grow": {
			file: waiter + "watch.go", old: "			next = backoff.Step()\n", new: "			fresh := f.backoff()\n			next, _ = fresh.Step(), backoff\n",
		},
		"waiter: it forgets that the server was well": {
			file: waiter + "watch.go", old: "		if time.Since(began) >= settledAfter {", new: "		if false && time.Since(began) >= settledAfter {",
		},
		"waiter: watches of all end together": {
			file: waiter + "watch.go", old: "(lifetime + rand.N(lifetime))", new: "(lifetime + rand.N(time.Second))",
		},
		"waiter: a watch that nobody ends lasts for ever": {
			file: waiter + "watch.go", old: "context.WithDeadline(ctx, ends.Add(overtime))", new: "context.WithDeadline(ctx, ends.Add(1000*overtime))",
		},
		"waiter: the end of a watch in its time is taken for an outage": {
			file: waiter + "watch.go", old: "case !time.Now().Before(ends):", new: "case false:",
		},
		"waiter: all events of a watch together are bounded": {
			file: waiter + "watch.go", old: "	for {\n		body.N = maxEvent\n", new: "	body.N = maxEvent\n	for {\n",
		},
		"waiter: one event is not bounded": {
			file: waiter + "watch.go", old: "body.N = maxEvent\n", new: "body.N = 1 << 40\n",
		},
		"waiter: it reads the gate past the server's memory": {
			file: waiter + "watch.go", old: "		\"resourceVersion\": {\"0\"},\n", new: "",
		},
		"waiter: every try is logged": {
			file: waiter + "wait.go", old: "if w.failure == nil || cause(w.failure) != cause(r.failure) {", new: "{",
		},
		"waiter: the file is looked at a second late": {
			file: waiter + "wait.go", old: "	w.lookAtFile()\n	for {", new: "	for {",
		},
		"waiter: a pod that is told to go starts": {
			file: waiter + "wait.go", old: "return exitTerminated, ", new: "return exitOpen, ",
		},
		"waiter: nobody is told when the wait is over": {
			file: waiter + "wait.go", old: "over = time.After(deadline.Sub(now))", new: "_ = now",
		},
	}
}
