package app

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

const gateJSON = `{"metadata":{"name":"job-0","namespace":"team"},"status":{"cliques":[` +
	`{"name":"job-0-ps","attempt":1,"open":true},{"name":"job-0-worker","attempt":1,"open":false,"expired":true}]}}`

func TestReadingAnEvent(t *testing.T) {
	for name, test := range map[string]struct {
		event string
		want  *entry
		ours  bool
		err   string
	}{
		"added":             {event: `{"type":"ADDED","object":` + gateJSON + `}`, want: &entry{attempt: 1, expired: true}, ours: true},
		"modified":          {event: `{"type":"MODIFIED","object":` + gateJSON + `}`, want: &entry{attempt: 1, expired: true}, ours: true},
		"deleted":           {event: `{"type":"DELETED","object":` + gateJSON + `}`, ours: true},
		"no status":         {event: `{"type":"ADDED","object":{"metadata":{"name":"job-0","namespace":"team"}}}`, ours: true},
		"null status":       {event: `{"type":"ADDED","object":{"metadata":{"name":"job-0","namespace":"team"},"status":null}}`, ours: true},
		"other cliques":     {event: `{"type":"ADDED","object":` + strings.ReplaceAll(gateJSON, "worker", "workers") + `}`, ours: true},
		"other gate":        {event: `{"type":"ADDED","object":` + strings.Replace(gateJSON, `"job-0"`, `"job-1"`, 1) + `}`},
		"other namespace":   {event: `{"type":"ADDED","object":` + strings.Replace(gateJSON, `"team"`, `"team-b"`, 1) + `}`},
		"bookmark":          {event: `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}`},
		"too old":           {event: `{"type":"ERROR","object":{"kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}}`, err: "the API server answers 410 Gone: too old"},
		"unknown type":      {event: `{"type":"ODD","object":` + gateJSON + `}`, err: "unknown type"},
		"no type":           {event: `{}`, err: "unknown type"},
		"status is a word":  {event: `{"type":"ADDED","object":{"metadata":{"name":"job-0","namespace":"team"},"status":"open"}}`, err: "cannot be read"},
		"open is a word":    {event: strings.Replace(`{"type":"ADDED","object":`+gateJSON+`}`, `"open":false`, `"open":"true"`, 1), err: "cannot be read"},
		"attempt too large": {event: strings.ReplaceAll(`{"type":"ADDED","object":`+gateJSON+`}`, `"attempt":1`, `"attempt":4294967297`), err: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			var e event
			if err := json.Unmarshal([]byte(test.event), &e); err != nil {
				t.Fatal(err)
			}
			got, ours, err := e.read("team", "job-0", "job-0-worker")
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || ours != test.ours || !reflect.DeepEqual(got, test.want) {
				t.Errorf("entry %+v, ours %t, error %v", got, ours, err)
			}
		})
	}
}

// The waiter declares the fields itself; here they are held against the API's own types.
func TestTheFieldsAreThoseOfTheAPI(t *testing.T) {
	now := metav1.NewTime(time.Now())
	for _, clique := range []grovev1alpha1.StartGateClique{
		{Name: "job-0-worker", Attempt: 7, Open: true, Since: &now, FirstStarted: &now},
		{Name: "job-0-worker", Attempt: 7, Expired: true, Since: &now, FirstStarted: &now},
		{Name: "job-0-worker"},
	} {
		text, err := json.Marshal(metav1.WatchEvent{Type: "MODIFIED", Object: rawGate(t, "team", "job-0", clique)})
		if err != nil {
			t.Fatal(err)
		}
		var e event
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		got, ours, err := e.read("team", "job-0", "job-0-worker")
		want := &entry{attempt: clique.Attempt, open: clique.Open, expired: clique.Expired}
		if err != nil || !ours || !reflect.DeepEqual(got, want) {
			t.Errorf("entry %+v, ours %t, error %v, of %+v", got, ours, err, clique)
		}
	}
}

func TestALongMessageIsCut(t *testing.T) {
	text := newStatusError(503, strings.Repeat("ü", 5000)).Error()
	if len(text) > 600 || !strings.HasSuffix(text, "ü…") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

// Whatever a server sends, an entry comes only of an event of the gate.
func FuzzReadingAnEvent(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":` + gateJSON + `}`))
	f.Add([]byte(`{"type":"ERROR","object":{"code":410}}`))
	f.Add([]byte(`{"type":"DELETED","object":{"metadata":{"name":"job-0","namespace":"team"},"status":{"cliques":null}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e event
		if json.Unmarshal(text, &e) != nil {
			return
		}
		got, ours, err := e.read("team", "job-0", "job-0-worker")
		if got != nil && (!ours || err != nil || e.Object.Metadata.Name != "job-0" || e.Object.Metadata.Namespace != "team" || e.Type == "DELETED") {
			t.Errorf("entry %+v of %q", got, text)
		}
	})
}
