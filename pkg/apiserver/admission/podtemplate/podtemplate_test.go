package podtemplate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// cluster answers dry runs over HTTP. What real ones answer is tested with a real one.
type cluster struct {
	mu      sync.Mutex
	pods    []*corev1.Pod
	queries []string
	inside  int
	most    int
	// answer decides about a pod; nil accepts.
	answer func(w http.ResponseWriter, r *http.Request, pod *corev1.Pod) error
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pod := &corev1.Pod{}
	err := json.NewDecoder(r.Body).Decode(pod)
	c.mu.Lock()
	c.pods, c.queries = append(c.pods, pod), append(c.queries, r.Method+" "+r.URL.Path+"?"+r.URL.RawQuery)
	c.inside++
	c.most = max(c.most, c.inside)
	c.mu.Unlock()
	if err == nil && c.answer != nil {
		err = c.answer(w, r, pod)
	}
	c.mu.Lock()
	c.inside--
	c.mu.Unlock()
	var answer any = pod
	code := http.StatusCreated
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		if known, ok := err.(apierrors.APIStatus); ok {
			status = known.Status()
		}
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		answer, code = &status, int(status.Code)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// names are the cliques that were tried.
func (c *cluster) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, pod := range c.pods {
		names = append(names, pod.Labels["grove.io/podclique"])
	}
	slices.Sort(names)
	return names
}

// recorder keeps warnings.
type recorder struct{ texts []string }

func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

func pluginFor(t *testing.T, c *cluster) *Plugin {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1, WarningHandlerWithContext: WarningHandler{},
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
	if err != nil {
		t.Fatal(err)
	}
	plugin := New()
	plugin.SetExternalKubeClientSet(client)
	return plugin
}

func attributes(pcs, old *grove.PodCliqueSet, resource, subresource string) admission.Attributes {
	operation := admission.Create
	var before runtime.Object
	if old != nil {
		operation, before = admission.Update, old
	}
	return admission.NewAttributesRecord(pcs, before, grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet"), pcs.Namespace, pcs.Name,
		grovev1alpha1.SchemeGroupVersion.WithResource(resource), subresource, operation, nil, false, &user.DefaultInfo{Name: "dev"})
}

func validate(t *testing.T, c *cluster, pcs, old *grove.PodCliqueSet) ([]string, error) {
	t.Helper()
	var said recorder
	err := pluginFor(t, c).Validate(warning.WithWarningRecorder(t.Context(), &said), attributes(pcs, old, "podcliquesets", ""), nil)
	return said.texts, err
}

func TestOnePodOfEachCliqueIsTriedAsADryRun(t *testing.T) {
	c := &cluster{}
	if said, err := validate(t, c, llm(), nil); err != nil || len(said) > 0 {
		t.Fatalf("warnings %q, error %v", said, err)
	}
	if diff := cmp.Diff([]string{"llm-0-group-0-worker", "llm-0-router"}, c.names()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	for _, query := range c.queries {
		if query != "POST /api/v1/namespaces/ns/pods?dryRun=All" {
			t.Errorf("the request is %s", query)
		}
	}
	for _, pod := range c.pods {
		// A pod of an owner that is not there would be refused where owners are checked.
		if len(pod.OwnerReferences) > 0 || pod.Spec.PriorityClassName != "high" || pod.Labels["app.kubernetes.io/part-of"] != "llm" {
			t.Errorf("the pod is %+v", pod)
		}
		if pod.Labels["grove.io/podclique"] == "llm-0-group-0-worker" &&
			(pod.Labels["tier"] != "back" || pod.Annotations["note"] != "a" || pod.Labels["grove.io/podcliquescalinggroup"] != "llm-0-group") {
			t.Errorf("labels %v, annotations %v", pod.Labels, pod.Annotations)
		}
	}
}

func TestOnlyNewTemplatesAreTried(t *testing.T) {
	worker := []string{"llm-0-group-0-worker"}
	both := []string{"llm-0-group-0-worker", "llm-0-router"}
	for name, tc := range map[string]struct {
		change func(*grove.PodCliqueSet)
		want   []string
	}{
		"nothing":         {func(*grove.PodCliqueSet) {}, nil},
		"replicas":        {func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas, pcs.Spec.Template.Cliques[1].Spec.Replicas = 5, 5 }, nil},
		"labels of a set": {func(pcs *grove.PodCliqueSet) { pcs.Labels = map[string]string{"a": "b"} }, nil},
		"a finalizer":     {func(pcs *grove.PodCliqueSet) { pcs.Finalizers = nil }, nil},
		"an image":        {func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[1].Spec.PodSpec.Containers[0].Image = "x" }, worker},
		"a label":         {func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[1].Labels = nil }, worker},
		"an annotation":   {func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[1].Annotations = nil }, worker},
		"another order":   {func(pcs *grove.PodCliqueSet) { slices.Reverse(pcs.Spec.Template.Cliques) }, nil},
		"another name": {func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques[1].Name = "worker"
			pcs.Spec.Template.Cliques[0].Name = "front"
		}, []string{"llm-0-front"}},
		"a priority class": {func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.PriorityClassName = "low" }, both},
		"a set on its way out": {func(pcs *grove.PodCliqueSet) {
			pcs.DeletionTimestamp = ptr.To(metav1.Now())
			pcs.Spec.Template.PriorityClassName = "low"
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, pcs := &cluster{}, llm()
			tc.change(pcs)
			if _, err := validate(t, c, pcs, llm()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.names()); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherRequestsTryNothing(t *testing.T) {
	c := &cluster{}
	plugin := pluginFor(t, c)
	for _, of := range [][2]string{{"podcliquesets", "status"}, {"podcliquesets", "scale"}, {"podcliques", ""}} {
		if err := plugin.Validate(t.Context(), attributes(llm(), nil, of[0], of[1]), nil); err != nil {
			t.Error(err)
		}
	}
	if plugin.Handles(admission.Delete) || plugin.Handles(admission.Connect) {
		t.Error("it is asked when nothing is written")
	}
	if names := c.names(); len(names) > 0 {
		t.Errorf("pods %q", names)
	}
}

// Everything that is wrong is told at once, in the order of the cliques.
func TestWhatIsWrongWithEveryCliqueIsTold(t *testing.T) {
	c := &cluster{answer: func(_ http.ResponseWriter, _ *http.Request, pod *corev1.Pod) error {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), pod.Name, field.ErrorList{field.Required(field.NewPath("spec.containers[0].image"), "")})
	}}
	_, err := validate(t, c, llm(), nil)
	const want = `PodCliqueSet.grove.io "llm" is invalid: [spec.template.cliques[0].spec.podSpec.containers[0].image: Required value, spec.template.cliques[1].spec.podSpec.containers[0].image: Required value]`
	if !apierrors.IsInvalid(err) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A security profile that only warns is heard, once for each clique, and nothing that the
// cluster says reaches anybody else.
func TestTheClustersWarningsAreHandedOn(t *testing.T) {
	c := &cluster{answer: func(w http.ResponseWriter, _ *http.Request, _ *corev1.Pod) error {
		w.Header().Add("Warning", `299 - "would violate PodSecurity"`)
		w.Header().Add("Warning", `199 - "not for people"`)
		return nil
	}}
	said, err := validate(t, c, llm(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"spec.template.cliques[0]: a pod of clique router: would violate PodSecurity",
		"spec.template.cliques[1]: a pod of clique worker: would violate PodSecurity",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	WarningHandler{}.HandleWarningHeaderWithContext(context.Background(), 299, "", "of another request")
}

// A priority that Kubernetes' own scheduler takes for no gang shows in the pod that the API server
// would make; other schedulers place it.
func TestAPriorityAboveThatOfGangsIsWarnedOf(t *testing.T) {
	for scheduler, want := range map[string][]string{
		"default-scheduler": {
			`spec.template.cliques[0]: the pods of clique router have PriorityClass "high" and a priority above 1000000000, the highest that Kubernetes' scheduler takes for a gang: where it schedules gangs, they are never placed`,
			`spec.template.cliques[1]: the pods of clique worker have PriorityClass "high" and a priority above 1000000000, the highest that Kubernetes' scheduler takes for a gang: where it schedules gangs, they are never placed`,
		},
		"kai-scheduler": nil,
	} {
		for priority, want := range map[int32][]string{1_000_000_000: nil, 1_000_000_001: want} {
			c := &cluster{answer: func(_ http.ResponseWriter, _ *http.Request, pod *corev1.Pod) error {
				pod.Spec.SchedulerName, pod.Spec.Priority = scheduler, &priority
				return nil
			}}
			said, err := validate(t, c, llm(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, said); diff != "" {
				t.Errorf("%s, priority %d: warnings (-want +got):\n%s", scheduler, priority, diff)
			}
		}
	}
}

// many is a set of many cliques.
func many(cliques int) *grove.PodCliqueSet {
	pcs := llm()
	pcs.Spec.Template.Cliques, pcs.Spec.Template.PodCliqueScalingGroups = nil, nil
	for i := range cliques {
		pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, grove.PodCliqueTemplateSpec{Name: fmt.Sprintf("c%02d", i), Spec: grove.PodCliqueSpec{PodSpec: podSpec()}})
	}
	return pcs
}

// Four pods are tried at once, and no fifth.
func TestPodsAreTriedFourAtOnce(t *testing.T) {
	together := make(chan struct{})
	c := &cluster{}
	var waiting sync.WaitGroup
	waiting.Add(concurrency)
	var first sync.Once
	arrived := 0
	c.answer = func(http.ResponseWriter, *http.Request, *corev1.Pod) error {
		c.mu.Lock()
		arrived++
		early := arrived <= concurrency
		c.mu.Unlock()
		if early {
			waiting.Done()
			first.Do(func() {
				go func() { waiting.Wait(); close(together) }()
			})
			<-together
		}
		return nil
	}
	if said, err := validate(t, c, many(20), nil); err != nil || len(said) > 0 {
		t.Fatalf("warnings %q, error %v", said, err)
	}
	if len(c.pods) != 20 || c.most != concurrency {
		t.Errorf("%d pods, %d at once; want 20, and %d", len(c.pods), c.most, concurrency)
	}
}

// A cluster that does not answer costs 2 s, however many cliques there are, and refuses nothing.
func TestAClusterThatDoesNotAnswerRefusesNothing(t *testing.T) {
	c := &cluster{answer: func(_ http.ResponseWriter, r *http.Request, _ *corev1.Pod) error {
		<-r.Context().Done()
		return r.Context().Err()
	}}
	began := time.Now()
	said, err := validate(t, c, many(12), nil)
	took := time.Since(began)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	if took < timeout || took > 2*timeout {
		t.Errorf("it took %s", took)
	}
	if len(said) != 12 {
		t.Fatalf("%d warnings: %q", len(said), said)
	}
	for i, text := range said {
		if want := fmt.Sprintf("spec.template.cliques[%d]: the pods of clique c%02d were not tried out: the cluster did not answer within 2s", i, i); text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}

func TestAClusterThatIsDownRefusesNothing(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	plugin := New()
	if plugin.ValidateInitialization() == nil {
		t.Error("it starts without a client")
	}
	plugin.SetExternalKubeClientSet(client)
	if err := plugin.ValidateInitialization(); err != nil {
		t.Error(err)
	}
	var said recorder
	if err := plugin.Validate(warning.WithWarningRecorder(t.Context(), &said), attributes(llm(), nil, "podcliquesets", ""), nil); err != nil {
		t.Fatalf("refused: %v", err)
	}
	if len(said.texts) != 2 || !strings.Contains(said.texts[0], "not tried out") || !strings.Contains(said.texts[0], "connection refused") {
		t.Errorf("warnings %q", said.texts)
	}
}
