package bench

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
	"github.com/copse-dev/copse/test/framework"
)

var requests = flag.Int("bench.requests", 100, "requests of each kind to the API")

// tenCliques is a set of ten cliques with a pod spec of ordinary size, and no replicas.
func tenCliques(name string) *grovev1alpha1.PodCliqueSet {
	set := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range 10 {
		role := fmt.Sprintf("c%d", i)
		set.Spec.Template.Cliques = append(set.Spec.Template.Cliques, grovev1alpha1.PodCliqueTemplateSpec{
			Name:   role,
			Labels: map[string]string{"app": "llm", "role": role},
			Spec: grovev1alpha1.PodCliqueSpec{
				RoleName: role, Replicas: 4,
				PodSpec: corev1.PodSpec{
					Volumes: []corev1.Volume{{Name: "data"}, {Name: "shm"}},
					Containers: []corev1.Container{{
						Name: "engine", Image: "example.com/engine:1", Command: []string{"serve", "--port=8000"},
						Ports: []corev1.ContainerPort{{ContainerPort: 8000}},
						Env:   []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}, {Name: "C", Value: "c"}},
						Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
							"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "nvidia.com/gpu": resource.MustParse("8"),
						}},
						VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "shm", MountPath: "/dev/shm"}},
					}},
				},
			},
		})
	}
	return set
}

// times collects how long requests took.
type times []time.Duration

// take measures a request. It fails the test unless the request ends as it should.
func (l *times) take(t *testing.T, ends func(error) bool, request func() error) {
	t.Helper()
	began := time.Now()
	err := request()
	*l = append(*l, time.Since(began))
	if !ends(err) {
		t.Fatalf("the request ends with %v", err)
	}
}

func (l times) String() string {
	slices.Sort(l)
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", float64(percentile(l, 50).Microseconds())/1e3, float64(percentile(l, 99).Microseconds())/1e3)
}

func succeeds(err error) bool { return err == nil }

// A set of ten cliques is created, changed, and refused, through the aggregation layer and
// past it, in turn with a ConfigMap of the same size in the same cluster's own API.
func TestRequestsToTheAPI(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("nothing is to be read from it"))
	ctx := t.Context()
	// It would write the status of each set between its create and its update.
	cluster.Stop(t, "copse-controller-manager")
	defer cluster.Start(t, "copse-controller-manager")
	example, err := cluster.Copse.GroveV1alpha1().PodCliqueSets(ns.Name).Create(ctx, tenCliques("example"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	filling := strings.Repeat("x", len(ns.Kubectl("get", "pcs", example.Name, "-o", "json", "--show-managed-fields")))

	past, err := copseclient.NewForConfig(cluster.Direct("copse-apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		way                     string
		client                  copseclient.Interface
		create, update, refused times
	}
	rows := []*row{{way: "through the aggregation layer", client: cluster.Copse}, {way: "past it", client: past}}
	var ofMap struct{ create, update times }
	for i := range *requests {
		for w, r := range rows {
			sets := r.client.GroveV1alpha1().PodCliqueSets(ns.Name)
			set := tenCliques(fmt.Sprintf("set-%d-%d", i, w))
			r.create.take(t, succeeds, func() (err error) { set, err = sets.Create(ctx, set, metav1.CreateOptions{}); return err })
			set.Spec.Template.Cliques[5].Spec.Replicas++
			set.Spec.Template.Cliques[5].Spec.PodSpec.Containers[0].Image = "example.com/engine:2"
			r.update.take(t, succeeds, func() error { _, err := sets.Update(ctx, set, metav1.UpdateOptions{}); return err })
			wrong := tenCliques("wrong")
			wrong.Spec.Template.Cliques[9].Spec.PodSpec.Containers[0].VolumeMounts[0].Name = "nothing"
			r.refused.take(t, apierrors.IsInvalid, func() error { _, err := sets.Create(ctx, wrong, metav1.CreateOptions{}); return err })
		}
		maps := cluster.Kube.CoreV1().ConfigMaps(ns.Name)
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("map-%d", i)}, Data: map[string]string{"x": filling}}
		ofMap.create.take(t, succeeds, func() (err error) {
			configMap, err = maps.Create(ctx, configMap, metav1.CreateOptions{})
			return err
		})
		configMap.Data["x"] += "y"
		ofMap.update.take(t, succeeds, func() error { _, err := maps.Update(ctx, configMap, metav1.UpdateOptions{}); return err })
	}
	for _, r := range rows {
		t.Logf("a set of ten cliques, %s, %d requests of each kind: create %s; update %s; refused create %s", r.way, *requests, r.create, r.update, r.refused)
	}
	t.Logf("a ConfigMap of the same %d bytes: create %s; update %s", len(filling), ofMap.create, ofMap.update)
}

// hostile are bodies of about three MiB, the most that the server reads, or less.
func hostile() map[string]string {
	const head = `{"apiVersion":"grove.io/v1alpha1","kind":"PodCliqueSet","metadata":{"name":"hostile"},"spec":{"replicas":2147483647,"template":{"cliques":[`
	clique := func(name, container string) string {
		return `{"name":"` + name + `","spec":{"roleName":"r","replicas":2147483647,"minAvailable":2147483647,"podSpec":{"containers":[{"name":"c","image":"i",` + container + `}]}}}`
	}
	const most = 3<<20 - 2048
	times := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	filled := func(one string) string { return times(most/(len(one)+1), one) }
	var cliques []string
	for i := range 10000 {
		cliques = append(cliques, clique(fmt.Sprintf("c%d", i), `"args":["a"]`))
	}
	return map[string]string{
		"2^31-1 everywhere":          head + clique("c", `"args":["a"]`) + `]}}}`,
		"10,000 cliques":             head + strings.Join(cliques, ",") + `]}}}`,
		"as many variables as fit":   head + clique("c", `"env":[`+filled(`{}`)+`]`) + `]}}}`,
		"as many arguments as fit":   head + clique("c", `"args":[`+filled(`""`)+`]`) + `]}}}`,
		"a long argument":            head + clique("c", `"args":["`+strings.Repeat("a", most)+`"]`) + `]}}}`,
		"as many cliques as fit":     head + filled(`{}`) + `]}}}`,
		"as many unknown fields":     head + clique("c", `"x":[`+filled(`{"y":1}`)+`]`) + `]}}}`,
		"objects within objects":     `{"apiVersion":"grove.io/v1alpha1","kind":"PodCliqueSet","metadata":{"name":"hostile"},"spec":` + strings.Repeat(`{"a":`, most/6) + `1` + strings.Repeat(`}`, most/6) + `}`,
		"lists within lists":         `{"apiVersion":"grove.io/v1alpha1","kind":"PodCliqueSet","metadata":{"name":"hostile"},"spec":` + strings.Repeat(`[`, most/2) + strings.Repeat(`]`, most/2) + `}`,
		"as many labels as fit":      `{"apiVersion":"grove.io/v1alpha1","kind":"PodCliqueSet","metadata":{"name":"hostile","labels":{` + labelsOf(most/16) + `}}}`,
		"cliques up to the limit":    head + times(20000, `{}`) + `]}}}`,
		"variables up to the limit":  head + clique("c", `"env":[`+times(20000, `{}`)+`]`) + `]}}}`,
		"labels up to the limit":     `{"apiVersion":"grove.io/v1alpha1","kind":"PodCliqueSet","metadata":{"name":"hostile","labels":{` + labelsOf(20000) + `}}}`,
		"lists up to the limit":      head + times(4, clique("c", `"env":[`+times(20000, `{}`)+`]`)) + `]}}}`,
		"names up to the limit":      head + times(2, clique("c", `"env":[`+times(20000, `{"name":"A"}`)+`]`)) + `]}}}`,
		"owners up to the limit":     `{"apiVersion":"grove.io/v1alpha1","kind":"PodCliqueSet","metadata":{"name":"hostile","ownerReferences":[` + times(20000, `{"uid":"a"}`) + `]}}`,
		"more than the server reads": head + clique("c", `"args":["`+strings.Repeat("a", 4<<20)+`"]`) + `]}}}`,
	}
}

func labelsOf(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"k%07d":"v"`, i)
	}
	return strings.Join(all, ",")
}

// What a hostile body costs the server: the time to the answer, and how much more memory
// is resident at most while it is answered.
func TestHostileRequests(t *testing.T) {
	const (
		longest = time.Second
		most    = 128 << 20
	)
	ns := cluster.Namespace(t, framework.Unrecorded("nothing is to be read from it"))
	client, err := copseclient.NewForConfig(cluster.Direct("copse-apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range hostile() {
		t.Run(name, func(t *testing.T) {
			memory := watchMemory(t, cluster.PID(t, "copse-apiserver"))
			began := time.Now()
			result := client.GroveV1alpha1().RESTClient().Post().MaxRetries(0).Namespace(ns.Name).Resource("podcliquesets").SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context())
			took, more := time.Since(began), memory.more(t)
			var code int
			result.StatusCode(&code)
			t.Logf("%d bytes: %d after %s, %d MiB more resident: %.200s", len(body), code, took.Round(time.Millisecond), more>>20, fmt.Sprint(result.Error()))
			if code < 400 || code >= 500 {
				t.Errorf("answered with %d", code)
			}
			if took > longest {
				t.Errorf("it took %s, of at most %s", took, longest)
			}
			if more > most {
				t.Errorf("%d MiB more were resident, of at most %d", more>>20, most>>20)
			}
		})
	}
}

// resident reads the memory of a process from the kernel, of which the highest since
// watchMemory is kept there.
type resident struct {
	dir    string
	before int64
}

func watchMemory(t *testing.T, pid int) resident {
	t.Helper()
	r := resident{dir: fmt.Sprintf("/proc/%d", pid)}
	const resetPeak = "5"
	if err := os.WriteFile(r.dir+"/clear_refs", []byte(resetPeak), 0); err != nil {
		t.Fatal(err)
	}
	r.before = r.read(t, "VmRSS:")
	return r
}

// more is how much more was resident at most.
func (r resident) more(t *testing.T) int64 {
	t.Helper()
	return r.read(t, "VmHWM:") - r.before
}

func (r resident) read(t *testing.T, field string) int64 {
	t.Helper()
	text, err := os.ReadFile(r.dir + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), field)
	var kilobytes int64
	if _, err := fmt.Sscanf(after, "%d", &kilobytes); err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}
