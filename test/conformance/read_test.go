package conformance

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// several makes objects of one test, which their label tells from those of others.
func (s *subject) several(test string, count int) (first *unstructured.Unstructured, selector string) {
	s.t.Helper()
	for i := range count {
		obj := s.create(fmt.Sprintf("%s-%d", test, i), map[string]string{"test": test, "number": fmt.Sprint(i)})
		if i == 0 {
			first = obj
		}
	}
	return first, "test=" + test
}

func (s *subject) list(options metav1.ListOptions) *unstructured.UnstructuredList {
	s.t.Helper()
	list, err := s.client.List(s.t.Context(), options)
	if err != nil {
		s.t.Fatalf("list %+v: %v", options, err)
	}
	return list
}

func names(list *unstructured.UnstructuredList) []string {
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].GetName())
	}
	return out
}

func pages(s *subject) {
	// What remains is told of lists without a selector alone.
	s = newSubject(s.t, s.kind)
	_, selector := s.several("page", 5)
	var seen []string
	options := metav1.ListOptions{Limit: 2}
	if s.clustered {
		options.LabelSelector = selector
	}
	first := s.list(options)
	if first.GetContinue() == "" || len(first.Items) != 2 {
		s.t.Fatalf("%d items in the first page of 2, and where to go on is %q", len(first.Items), first.GetContinue())
	}
	if left := first.GetRemainingItemCount(); !s.clustered && (left == nil || *left != 3) {
		s.t.Errorf("3 items remain, told %v", ptr.Deref(left, -1))
	}
	for page := first; ; page = s.list(options) {
		seen = append(seen, names(page)...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
		if page.GetResourceVersion() != first.GetResourceVersion() {
			s.t.Error("the pages are of different versions")
		}
	}
	if want := []string{"page-0", "page-1", "page-2", "page-3", "page-4"}; !slices.Equal(seen, want) {
		s.t.Errorf("pages of %v", seen)
	}
	_, err := s.client.List(s.t.Context(), metav1.ListOptions{Limit: 2, Continue: "nonsense"})
	s.refused("a place to go on that is none", metav1.StatusReasonBadRequest, err)
}

func resourceVersions(s *subject) {
	first, selector := s.several("version", 2)
	options := metav1.ListOptions{LabelSelector: selector}
	for match, want := range map[metav1.ResourceVersionMatch]int{metav1.ResourceVersionMatchExact: 1, metav1.ResourceVersionMatchNotOlderThan: 2} {
		options.ResourceVersion, options.ResourceVersionMatch = first.GetResourceVersion(), match
		if list := s.list(options); match == metav1.ResourceVersionMatchExact && len(list.Items) != want || len(list.Items) == 0 {
			s.t.Errorf("%s: %v", match, names(list))
		}
	}
	if list := s.list(metav1.ListOptions{LabelSelector: selector}); len(list.Items) != 2 {
		s.t.Errorf("the newest: %v", names(list))
	}
	_, err := s.client.List(s.t.Context(), metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	s.refused("a match without a version", metav1.StatusReasonInvalid, err)
	_, err = s.client.List(s.t.Context(), metav1.ListOptions{ResourceVersion: "nonsense"})
	if err == nil {
		s.t.Error("a version that is none is accepted")
	}
}

func selectors(s *subject) {
	_, selector := s.several("select", 3)
	for what, tc := range map[string]struct {
		options metav1.ListOptions
		want    []string
	}{
		"label":            {metav1.ListOptions{LabelSelector: selector + ",number=1"}, []string{"select-1"}},
		"set of labels":    {metav1.ListOptions{LabelSelector: selector + ",number in (0,2)"}, []string{"select-0", "select-2"}},
		"absence":          {metav1.ListOptions{LabelSelector: selector + ",!number"}, nil},
		"name":             {metav1.ListOptions{FieldSelector: "metadata.name=select-2"}, []string{"select-2"}},
		"all but one name": {metav1.ListOptions{LabelSelector: selector, FieldSelector: "metadata.name!=select-2"}, []string{"select-0", "select-1"}},
	} {
		if got := names(s.list(tc.options)); !slices.Equal(got, tc.want) {
			s.t.Errorf("%s: %v", what, got)
		}
	}
	_, err := s.client.List(s.t.Context(), metav1.ListOptions{FieldSelector: "spec.nonsense=1"})
	s.refused("a field that cannot be selected", metav1.StatusReasonBadRequest, err)
	_, err = s.client.List(s.t.Context(), metav1.ListOptions{LabelSelector: "a=b=c"})
	s.refused("a selector that is none", metav1.StatusReasonBadRequest, err)
}

func collection(s *subject) {
	_, selector := s.several("many", 3)
	s.create("one", nil)
	s.accepted("delete", s.client.DeleteCollection(s.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: selector}))
	for i := range 3 {
		s.gone(fmt.Sprintf("many-%d", i))
	}
	s.get("one")
}

// next is the next event of a watch that is not a bookmark.
func (s *subject) next(w watch.Interface) watch.Event {
	s.t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				s.t.Fatal("the watch has ended")
			}
			if event.Type != watch.Bookmark {
				return event
			}
		case <-timeout:
			s.t.Fatal("no event within a minute")
		}
	}
}

// expectEvent waits for the event of a write that answered with written. A controller may
// have written in between: what it changed is passed over.
func (s *subject) expectEvent(w watch.Interface, eventType watch.EventType, written *unstructured.Unstructured) {
	s.t.Helper()
	for {
		event := s.next(w)
		obj, ok := event.Object.(*unstructured.Unstructured)
		if !ok || obj.GetName() != written.GetName() {
			s.t.Fatalf("want %s of %s, got %s: %v", eventType, written.GetName(), event.Type, event.Object)
		}
		if obj.GetResourceVersion() == written.GetResourceVersion() {
			if event.Type != eventType {
				s.t.Fatalf("want %s of %s, got %s: %v", eventType, written.GetName(), event.Type, event.Object)
			}
			return
		}
		if event.Type != watch.Modified {
			s.t.Fatalf("want %s of version %s of %s, got %s: %v", eventType, written.GetResourceVersion(), written.GetName(), event.Type, event.Object)
		}
	}
}

// startWatch watches until the test is over.
func (s *subject) startWatch(options metav1.ListOptions) watch.Interface {
	s.t.Helper()
	w, err := s.client.Watch(s.t.Context(), options)
	if err != nil {
		s.t.Fatalf("watch %+v: %v", options, err)
	}
	s.t.Cleanup(w.Stop)
	return w
}

func watches(s *subject) {
	options := metav1.ListOptions{LabelSelector: "test=watch"}
	options.ResourceVersion = s.list(options).GetResourceVersion()
	w := s.startWatch(options)
	s.create("unwatched", nil)
	s.expectEvent(w, watch.Added, s.create("watched", map[string]string{"test": "watch"}))
	for _, step := range []struct {
		labels string
		want   watch.EventType
	}{
		{`{"a":"b"}`, watch.Modified},
		{`{"test":null}`, watch.Deleted},
		{`{"test":"watch"}`, watch.Added},
	} {
		written, err := s.client.Patch(s.t.Context(), "watched", types.MergePatchType, []byte(`{"metadata":{"labels":`+step.labels+`}}`), metav1.PatchOptions{})
		s.accepted("label "+step.labels, err)
		s.expectEvent(w, step.want, written)
	}
}

// watchList is a watch that first sends what there is, and says when that is over.
func watchList(s *subject) {
	_, selector := s.several("initial", 2)
	w := s.startWatch(metav1.ListOptions{
		LabelSelector: selector, SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	var got []string
	timeout := time.After(time.Minute)
	for {
		select {
		case event, open := <-w.ResultChan():
			obj, ok := event.Object.(*unstructured.Unstructured)
			if !open || !ok {
				s.t.Fatalf("the watch has ended: %v", event.Object)
			}
			if event.Type != watch.Bookmark {
				got = append(got, obj.GetName())
				continue
			}
			if obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
				continue
			}
			slices.Sort(got)
			if !slices.Equal(got, []string{"initial-0", "initial-1"}) || obj.GetResourceVersion() == "" {
				s.t.Errorf("at the bookmark of version %q there was %v", obj.GetResourceVersion(), got)
			}
			return
		case <-timeout:
			s.t.Fatal("no bookmark within a minute")
		}
	}
}

// future: a version that has not been reached is waited for, and then refused.
func future(s *subject) {
	_, err := s.client.List(s.t.Context(), metav1.ListOptions{ResourceVersion: "1000000000", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	s.refused("a version of the future", metav1.StatusReasonTimeout, err)
	if err != nil && !strings.Contains(err.Error(), "Too large resource version") {
		s.t.Errorf("a version of the future: %v", err)
	}
}

func tables(s *subject) {
	s.several("table", 2)
	client, err := rest.HTTPClientFor(cluster.Config)
	if err != nil {
		s.t.Fatal(err)
	}
	path := "/apis/" + s.resource.GroupVersion().String()
	if !s.clustered {
		path += "/namespaces/" + s.namespace
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, cluster.Config.Host+path+"/"+s.resource.Resource+"?labelSelector=test%3Dtable", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("answer %d, %v: %s", response.StatusCode, err, body)
	}
	for _, want := range []string{`"kind":"Table"`, `"name":"Name"`, `"name":"Age"`, `"table-0"`, `"table-1"`} {
		if !strings.Contains(string(body), want) {
			s.t.Errorf("%s is not in the table:\n%s", want, body)
		}
	}
}
