package copse

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
)

const (
	retryInterval = 200 * time.Millisecond
	// applyTimeout is long enough for a server that has just started, and
	// short enough for whoever has made a mistake in a manifest.
	applyTimeout = 15 * time.Second
	// tokenLifetime outlives a cluster: nobody renews the token.
	tokenLifetime = 365 * 24 * time.Hour
)

// Installer installs Copse.
type Installer struct {
	kubectl    string
	kubeconfig string
	folder     string
	core       kubernetes.Interface
	aggregator aggregator.Interface
}

// NewInstaller uses the kubectl program as the administrator of the kubeconfig
// file, and keeps the kustomization in the folder.
func NewInstaller(kubectl, kubeconfig, folder string, config *rest.Config) (*Installer, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	agg, err := aggregator.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Installer{kubectl: kubectl, kubeconfig: kubeconfig, folder: folder, core: core, aggregator: agg}, nil
}

// Apply applies the overlay, for servers on the ports. The certificate of the
// API server is signed by the authority in the file.
func (i *Installer) Apply(ctx context.Context, overlay string, ports Ports, caFile string) error {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	path, err := relative(i.folder, overlay)
	if err != nil {
		return err
	}
	content, err := kustomization(path, ports, ca)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(i.folder, "kustomization.yaml"), content, 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	return retry(ctx, func() error { return i.apply(ctx) })
}

func (i *Installer) apply(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, i.kubectl, "--kubeconfig", i.kubeconfig,
		"apply", "--server-side", "--force-conflicts", "-k", i.folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply -k %s: %w\n%s", i.folder, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Token returns a token of a service account in Copse's namespace.
func (i *Installer) Token(ctx context.Context, serviceAccount string) (string, error) {
	seconds := int64(tokenLifetime / time.Second)
	var token string
	err := retry(ctx, func() error {
		answer, err := i.core.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, serviceAccount,
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
			metav1.CreateOptions{})
		if err == nil {
			token = answer.Status.Token
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("token of %s: %w", serviceAccount, err)
	}
	return token, nil
}

// Announce makes kube-apiserver look at Copse's server now. In a cluster the
// endpoints of the Service change when a server comes up, and that is when
// kube-apiserver looks; a Service of type ExternalName has none, and after a
// failure kube-apiserver would wait for up to half a minute.
func (i *Installer) Announce(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"cluster.copse.dev/server-started":%q}}}`,
		time.Now().Format(time.RFC3339Nano))
	return retry(ctx, func() error {
		_, err := i.core.CoreV1().Services(Namespace).Patch(ctx, Service, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// WaitAvailable returns when all of Copse's APIs are served.
func (i *Installer) WaitAvailable(ctx context.Context) error {
	return retry(ctx, func() error {
		list, err := i.aggregator.ApiregistrationV1().APIServices().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		return available(list.Items)
	})
}

// available returns what is wrong with Copse's APIs, if something is.
func available(all []apiregistrationv1.APIService) error {
	found := false
	for _, api := range all {
		if api.Spec.Service == nil || api.Spec.Service.Namespace != Namespace {
			continue
		}
		found = true
		if err := availability(api); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("no APIService points to the namespace %s", Namespace)
	}
	return nil
}

func availability(api apiregistrationv1.APIService) error {
	for _, c := range api.Status.Conditions {
		if c.Type != apiregistrationv1.Available {
			continue
		}
		if c.Status == apiregistrationv1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("APIService %s is not available: %s: %s", api.Name, c.Reason, c.Message)
	}
	return fmt.Errorf("APIService %s is not available yet", api.Name)
}

// relative returns the path from one folder to another. Kustomize takes no
// absolute path, and follows links before it goes up.
func relative(from, to string) (string, error) {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return "", err
	}
	to, err = filepath.EvalSymlinks(to)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// retry repeats the function until it succeeds or the time is up, and returns
// its last failure.
func retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryInterval):
		}
	}
}
