package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader answers with one revision after another; an empty one is an error.
type reader struct {
	client.Reader
	revisions []string
}

func (r *reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	revision := r.revisions[0]
	r.revisions = r.revisions[1:]
	if revision == "" {
		return errors.New("not now")
	}
	list.SetResourceVersion(revision)
	return nil
}

func TestTheManagerEndsWhenTheRevisionOfTheStorageFalls(t *testing.T) {
	for name, tc := range map[string]struct {
		revisions []string
		want      string
	}{
		"it rises":                          {[]string{"9", "9", "10", "110"}, ""},
		"the server is away":                {[]string{"", "9", "", "10"}, ""},
		"it falls":                          {[]string{"9", "10", "9"}, "fell from 10 to 9"},
		"it falls while the server is away": {[]string{"9", "110", "", "", "95"}, "fell from 110 to 95"},
		"it is none":                        {[]string{"9", "nine"}, "compare revisions"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &revisionWatch{reader: &reader{revisions: tc.revisions}}
			var err error
			for range tc.revisions {
				if err = w.look(t.Context()); err != nil {
					break
				}
			}
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("it ends with %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("it ends with %v, wanted %q", err, tc.want)
			}
		})
	}
}

func TestTheEndOfTheManagerIsNoFailureOfTheRevision(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&revisionWatch{reader: &reader{revisions: []string{"9"}}}).Start(ctx); err != nil {
		t.Error(err)
	}
}
