package integration

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// longest is how long a processor is busy with a request that is refused, and most how
	// much memory all of them together leave the server with.
	longest = time.Second
	most    = 128 << 20
)

// metric is what a server says of itself.
func metric(t *testing.T, server, name string) float64 {
	t.Helper()
	got := send(t, bareClient(t, true, readPair(t, "admin")), http.MethodGet, server+"/metrics", nil, nil)
	for line := range strings.Lines(got.body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	t.Fatalf("the server does not tell its %s: %d", name, got.code)
	return 0
}

func resident(t *testing.T) int { return int(metric(t, serverURL(), "process_resident_memory_bytes")) }

// busy is how much time of its processors a server has used.
func busy(t *testing.T, server string) time.Duration {
	return time.Duration(metric(t, server, "process_cpu_seconds_total") * float64(time.Second))
}

// hostile is a request that has to be refused at little cost.
type hostile struct {
	method, path, contentType, body string
	codes                           []int
	// says is part of the answer.
	says []string
}

func (h hostile) test(t *testing.T) {
	t.Helper()
	client := bareClient(t, true, readPair(t, "admin"))
	// What else the server does is not the request's cost: the least of some tries counts.
	least := time.Duration(math.MaxInt64)
	code := 0
	for range 5 {
		began := busy(t, serverURL())
		got := send(t, client, h.method, serverURL()+h.path, http.Header{"Content-Type": {h.contentType}}, strings.NewReader(h.body))
		least, code = min(least, busy(t, serverURL())-began), got.code
		if !slices.Contains(h.codes, got.code) {
			t.Fatalf("answered with %d, want one of %v: %.1000s", got.code, h.codes, got.body)
		}
		for _, part := range h.says {
			if !strings.Contains(got.body, part) {
				t.Errorf("the answer does not say %q: %.1000s", part, got.body)
			}
		}
		if len(got.body) > 64<<10 {
			t.Errorf("the answer has %d bytes", len(got.body))
		}
		if least <= longest {
			break
		}
	}
	t.Logf("%d bytes, answered with %d, %s", len(h.body), code, least)
	if least > longest {
		t.Errorf("takes %s, of at most %s", least, longest)
	}
}

// testHostile sends hostile requests, and sees that the server is as it was before.
func testHostile(t *testing.T, requests map[string]hostile) {
	t.Helper()
	began, before := startTime(t), resident(t)
	for name, h := range requests {
		t.Run(name, h.test)
	}
	if after := resident(t); after-before > most {
		t.Errorf("the server's memory has grown from %d to %d MiB", before>>20, after>>20)
	} else {
		t.Logf("memory %d MiB before, %d MiB after", before>>20, after>>20)
	}
	if now := startTime(t); now != began {
		t.Errorf("the server was started anew: %s, before %s", now, began)
	}
}

// object is a set as JSON, of cliques that each take a size.
func object(name string, spec map[string]any, cliques ...any) string {
	template := map[string]any{"cliques": cliques}
	for _, key := range []string{"podCliqueScalingGroups", "cliqueStartupType"} {
		if value, ok := spec[key]; ok {
			template[key] = value
			delete(spec, key)
		}
	}
	spec["template"] = template
	text, err := json.Marshal(map[string]any{"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": map[string]any{"name": name}, "spec": spec})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func clique(name string, fields map[string]any) map[string]any {
	fields["podSpec"] = map[string]any{"containers": []any{map[string]any{"name": "main", "image": "example.com/main"}}}
	return map[string]any{"name": name, "spec": fields}
}

// S12: no value of a field asks for more than it is worth.
func TestValuesThatAskForTooMuchAreRefusedAtLittleCost(t *testing.T) {
	ns := cluster.Namespace(t)
	path := "/apis/grove.io/v1alpha1/namespaces/" + ns.Name + "/podcliquesets"
	invalid := func(body string, says ...string) hostile {
		return hostile{http.MethodPost, path, "application/json", body, []int{http.StatusUnprocessableEntity}, says}
	}
	group := func(replicas int) map[string]any {
		return map[string]any{"podCliqueScalingGroups": []any{map[string]any{"name": "g", "cliqueNames": []string{"worker"}, "replicas": replicas}}}
	}
	with := func(spec map[string]any, key string, value any) map[string]any {
		spec[key] = value
		return spec
	}
	many := make([]any, 10000)
	for i := range many {
		many[i] = map[string]any{"name": fmt.Sprintf("c%d", i), "spec": map[string]any{"replicas": 1}}
	}
	ring := make([]any, 200)
	for i := range ring {
		ring[i] = clique(fmt.Sprintf("c%d", i), map[string]any{"startsAfter": []string{fmt.Sprintf("c%d", (i+1)%len(ring))}})
	}
	long := strings.Repeat("a", 253)
	const huge = math.MaxInt32
	testHostile(t, map[string]hostile{
		"2^31-1 replicas of a set":                   invalid(object("one", map[string]any{"replicas": huge}, clique("worker", map[string]any{})), "spec", "more than 20000 pods"),
		"2^31-1 replicas of a clique":                invalid(object("one", map[string]any{}, clique("worker", map[string]any{"replicas": huge})), "spec", "more than 20000 pods"),
		"2^31-1 copies of a scaling group":           invalid(object("one", group(huge), clique("worker", map[string]any{})), "spec", "more than 20000 pods"),
		"a product beyond 64 bits":                   invalid(object("one", with(group(huge), "replicas", huge), clique("worker", map[string]any{"replicas": huge})), "spec", "more than 20000 pods"),
		"a product that is small again in 32 bits":   invalid(object("one", with(group(1<<16), "replicas", 1<<16), clique("worker", map[string]any{"replicas": 1})), "spec", "more than 20000 pods"),
		"2^31-1 pods for an autoscaler":              invalid(object("one", map[string]any{}, clique("worker", map[string]any{"autoScalingConfig": map[string]any{"maxReplicas": huge}})), "spec"),
		"2^31-1 restarts of 2^31-1 replicas":         invalid(object("one", map[string]any{"replicas": huge, "workloadType": "Training", "trainingSpec": map[string]any{"maxRestarts": huge}}, clique("worker", map[string]any{})), "more than 20000 pods"),
		"10,000 cliques":                             invalid(object("one", map[string]any{}, many...), "spec.template.cliques", "at most 256"),
		"cliques that wait for each other":           invalid(object("one", map[string]any{"cliqueStartupType": "CliqueStartupTypeExplicit"}, ring...), "startsAfter"),
		"names that do not fit into a host name":     invalid(object(long, map[string]any{}, clique(long, map[string]any{})), "metadata.name", "63"),
		"a number that is none of 32 bits":           {http.MethodPost, path, "application/json", strings.Replace(object("one", map[string]any{"replicas": 1}, clique("worker", map[string]any{})), `"replicas":1`, `"replicas":1e300`, 1), []int{http.StatusBadRequest}, nil},
		"a size by /scale":                           {http.MethodPatch, path + "/none/scale", "application/merge-patch+json", `{"spec":{"replicas":2147483647}}`, []int{http.StatusNotFound}, nil},
		"a limit of 2^63 of a list":                  {http.MethodGet, path + "?limit=9223372036854775807", "", "", []int{http.StatusOK}, nil},
		"a selector of many labels":                  {http.MethodGet, path + "?labelSelector=" + strings.Repeat("a!%3Db%2C", 5000) + "a", "", "", []int{http.StatusOK, http.StatusBadRequest, http.StatusRequestHeaderFieldsTooLarge}, nil},
		"a watch that would never end, of no object": {http.MethodGet, path + "?watch=true&timeoutSeconds=9223372036854775807&resourceVersion=9223372036854775807", "", "", []int{http.StatusGatewayTimeout, http.StatusBadRequest, http.StatusGone}, nil},
	})
	if list, err := cluster.Copse.GroveV1alpha1().PodCliqueSets(ns.Name).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("%d sets were stored, error %v", len(list.Items), err)
	}
}

// bombs that stay small until they are read.
const yamlBomb = `apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: one}
a: &a ["lol","lol","lol","lol","lol","lol","lol","lol","lol"]
b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]
c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]
d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]
e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]
f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]
g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]
h: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]
i: &i [*h,*h,*h,*h,*h,*h,*h,*h,*h]
`

// copyBomb doubles a value with each operation.
func copyBomb(operations int) string {
	patch := []map[string]any{{"op": "add", "path": "/metadata/annotations", "value": map[string]any{"a": strings.Repeat("a", 1000)}}}
	for i := range operations {
		patch = append(patch, map[string]any{"op": "copy", "from": "/metadata/annotations", "path": fmt.Sprintf("/metadata/annotations/%d", i)})
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// S13: no body costs more than its bytes.
func TestBodiesThatWouldCostTooMuchAreRefused(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(strings.Replace(inference, "replicas: 1", "replicas: 0", 1))
	const mib = 1 << 20
	namespace := "/namespaces/" + ns.Name + "/"
	sets := "/apis/grove.io/v1alpha1" + namespace + "podcliquesets"
	post := func(contentType, body string, codes ...int) hostile {
		return hostile{http.MethodPost, sets, contentType, body, codes, nil}
	}
	patch := func(contentType, body string, codes ...int) hostile {
		return hostile{http.MethodPatch, sets + "/llm", contentType, body, codes, nil}
	}
	apply := func(body string, codes ...int) hostile {
		return hostile{http.MethodPatch, sets + "/llm?fieldManager=test", "application/apply-patch+yaml", body, codes, nil}
	}
	const (
		tooLarge, bad, invalid = http.StatusRequestEntityTooLarge, http.StatusBadRequest, http.StatusUnprocessableEntity
		head                   = `{"apiVersion":"grove.io/v1alpha1","kind":"PodCliqueSet","metadata":{"name":"one"`
	)
	nest := func(open, end string, depth int) string {
		return strings.Repeat(open, depth) + strings.Repeat(end, depth)
	}
	repeat := func(n int, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(parts, ",")
	}
	long := strings.Repeat(strings.Repeat("n", 60)+".", 3)
	labels := "{" + repeat(8000, `"`+long+`example.com/%d":"value"`) + "}"
	owners := "[" + repeat(7000, `{"apiVersion":"v1","kind":"ConfigMap","name":"`+long+`a","uid":"u-%d"}`) + "]"
	finalizers := "[" + repeat(9000, `"`+long+`example.com/%d"`) + "]"
	managed := `[{"manager":"m","operation":"Update","apiVersion":"grove.io/v1alpha1","time":"2020-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{` +
		repeat(100000, `"f:%d":{}`) + `}}]`
	requests := map[string]hostile{
		"more than 3 MiB":                 post("application/json", head+`,"annotations":{"a":"`+strings.Repeat("a", 3*mib)+`"}}}`, tooLarge),
		"more than 3 MiB of blanks":       post("application/json", strings.Repeat(" ", 3*mib+1), tooLarge),
		"a patch of more than 3 MiB":      patch("application/merge-patch+json", `{"metadata":{"annotations":{"a":"`+strings.Repeat("a", 3*mib)+`"}}}`, tooLarge),
		"an apply of more than 3 MiB":     apply(head+`,"annotations":{"a":"`+strings.Repeat("a", 3*mib)+`"}}}`, tooLarge),
		"lists, 10,000 deep":              post("application/json", head+`},"spec":`+nest("[", "]", 10000)+`}`, bad),
		"lists, a million deep":           post("application/json", head+`},"spec":`+nest("[", "]", 1000000)+`}`, invalid),
		"objects, 10,000 deep":            post("application/json", head+`},"x":`+strings.Repeat(`{"a":`, 10000)+"1"+strings.Repeat("}", 10000)+`}`, bad),
		"objects, 90,000 deep, patched":   patch("application/merge-patch+json", strings.Repeat(`{"a":`, 90000)+"1"+strings.Repeat("}", 90000), bad),
		"objects, 90,000 deep, applied":   apply(strings.Repeat(`{"a":`, 90000)+"1"+strings.Repeat("}", 90000), bad),
		"aliases of aliases":              post("application/yaml", yamlBomb, bad),
		"aliases of aliases, applied":     apply(yamlBomb, bad),
		"copies of copies":                patch("application/json-patch+json", copyBomb(40), bad, invalid, tooLarge),
		"100,000 operations":              patch("application/json-patch+json", "["+strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/kind","value":"PodCliqueSet"},`, 50000), ",")+"]", bad, invalid, tooLarge),
		"managed fields of 2 MiB":         post("application/json", head+`,"managedFields":`+managed+`}}`, bad, invalid, tooLarge),
		"no JSON at all":                  post("application/json", strings.Repeat("\x00", mib), bad),
		"protobuf that is none":           post("application/vnd.kubernetes.protobuf", "k8s\x00"+strings.Repeat("\xff", mib), bad, http.StatusUnsupportedMediaType),
		"a media type of nobody":          post("application/x-"+strings.Repeat("a", 1000), "{}", http.StatusUnsupportedMediaType),
		"a body that is another resource": post("application/json", `{"apiVersion":"v1","kind":"Secret"}`, bad),
	}
	// What etcd does not take, of each kind and of each part that grows without a limit.
	for resource, spec := range map[string]string{
		"grove.io/v1alpha1" + namespace + "podcliquesets":          `{"replicas":0,"template":{"cliques":[{"name":"w","spec":{"podSpec":{"containers":[{"name":"m","image":"i"}]}}}]}}`,
		"grove.io/v1alpha1" + namespace + "podcliques":             `{"roleName":"w","replicas":1,"minAvailable":1,"podSpec":{"containers":[{"name":"m","image":"i"}]}}`,
		"grove.io/v1alpha1" + namespace + "podcliquescalinggroups": `{"replicas":1,"minAvailable":1,"cliqueNames":["w"]}`,
		"grove.io/v1alpha1" + namespace + "startgates":             "",
		"grove.io/v1alpha1/clustertopologybindings":                `{"levels":[{"domain":"zone","key":"topology.kubernetes.io/zone"}]}`,
		"scheduler.grove.io/v1alpha1" + namespace + "podgangs":     `{"podgroups":[{"name":"w","minReplicas":1,"podReferences":[{"namespace":"` + ns.Name + `","name":"none"}]}]}`,
		"scheduler.grove.io/v1alpha1" + namespace + "podgroups":    `{"minMember":1}`,
	} {
		if spec != "" {
			spec = `,"spec":` + spec
		}
		parts := map[string]string{"labels": labels}
		if strings.HasSuffix(resource, "podcliquesets") {
			parts["ownerReferences"], parts["finalizers"] = owners, finalizers
		}
		for part, value := range parts {
			name := resource[strings.LastIndex(resource, "/")+1:] + " with 1.6 MiB of " + part
			requests[name] = hostile{http.MethodPost, "/apis/" + resource, "application/json", `{"metadata":{"name":"huge","` + part + `":` + value + `}` + spec + `}`, []int{tooLarge}, []string{"keep less in its metadata"}}
		}
	}
	testHostile(t, requests)
	if got := ns.Kubectl("get", "grove", "-o", "name"); got != "podcliqueset.grove.io/llm\n" {
		t.Errorf("something was stored: %s", got)
	}
}

// S13: what keeps account of who wrote what is slow with many keys. That is Kubernetes'
// own, and with as many as a body may have it costs no more than in a ConfigMap that the
// cluster's API server is sent.
func TestManyKeysCostNoMoreThanInAConfigMap(t *testing.T) {
	ns := cluster.Namespace(t)
	parts := make([]string, 20000)
	for i := range parts {
		parts[i] = fmt.Sprintf(`"key-%d":"value"`, i)
	}
	body := `{"metadata":{"name":"many","labels":{` + strings.Join(parts, ",") + `}},%s}`
	client := bareClient(t, true, readPair(t, "admin"))
	cost := func(server, path, rest string) time.Duration {
		least := time.Duration(math.MaxInt64)
		for range 3 {
			began := busy(t, server)
			got := send(t, client, http.MethodPost, server+path+"?dryRun=All", http.Header{"Content-Type": {"application/json"}}, strings.NewReader(fmt.Sprintf(body, rest)))
			least = min(least, busy(t, server)-began)
			if got.code != http.StatusCreated {
				t.Fatalf("%s is answered with %d: %.1000s", path, got.code, got.body)
			}
		}
		return least
	}
	theirs := cost(cluster.Config.Host, "/api/v1/namespaces/"+ns.Name+"/configmaps", `"data":{}`)
	ours := cost(serverURL(), "/apis/scheduler.grove.io/v1alpha1/namespaces/"+ns.Name+"/podgroups", `"spec":{"minMember":1}`)
	t.Logf("a ConfigMap costs %s, a PodGroup %s", theirs, ours)
	if ours > 2*theirs+200*time.Millisecond {
		t.Errorf("a PodGroup costs %s, a ConfigMap %s", ours, theirs)
	}
}
