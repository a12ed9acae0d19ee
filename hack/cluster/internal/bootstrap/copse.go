package bootstrap

import (
	"context"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/copse-dev/copse/hack/cluster/internal/certs"
	"github.com/copse-dev/copse/hack/cluster/internal/components"
	"github.com/copse-dev/copse/hack/cluster/internal/copse"
	"github.com/copse-dev/copse/hack/cluster/internal/kubeconfig"
)

// startCopse installs Copse's manifests, then starts its programs with the
// identities and under the roles that the manifests have made.
func (c *cluster) startCopse(ctx context.Context) error {
	began := time.Now()
	if err := c.run(components.CopseEtcd); err != nil {
		return err
	}
	installer, err := c.installer()
	if err != nil {
		return err
	}
	ca := c.config.Dir.Certs().Cert(certs.CopseCA)
	ports := copse.Ports{APIServer: c.config.Port[components.CopseAPIServer], Webhook: c.config.WebhookPort}
	if err := installer.Apply(ctx, c.options.Overlay, ports, ca); err != nil {
		return err
	}
	c.report("copse's manifests are applied after %.1f s", time.Since(began).Seconds())
	for _, name := range []string{components.CopseAPIServer, components.CopseControllerManager} {
		if err := c.writeToken(ctx, installer, name); err != nil {
			return err
		}
	}
	if err := c.await(ctx, components.CopseEtcd); err != nil {
		return err
	}
	if err := c.runAndAwait(ctx, components.CopseAPIServer); err != nil {
		return err
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return c.runAndAwait(ctx, components.CopseControllerManager) })
	parts.Go(func() error {
		if err := installer.WaitAvailable(ctx); err != nil {
			return err
		}
		c.report("copse's APIs are served after %.1f s", time.Since(began).Seconds())
		return nil
	})
	return parts.Wait()
}

// writeToken writes the kubeconfig file of a program of Copse, with the token
// of the service account that has the program's name.
func (c *cluster) writeToken(ctx context.Context, installer *copse.Installer, name string) error {
	token, err := installer.Token(ctx, name)
	if err != nil {
		return err
	}
	return kubeconfig.Write(c.config.Dir.KubeconfigOf(name), c.config.Server(),
		c.config.Dir.Certs().Cert(certs.ClusterCA), kubeconfig.User{Name: name, Token: token})
}

func (c *cluster) announceCopse(ctx context.Context, _ bool) {
	installer, err := c.installer()
	if err == nil {
		err = installer.Announce(ctx)
	}
	if err != nil && ctx.Err() == nil {
		c.report("tell kube-apiserver of copse-apiserver: %v", err)
	}
}

func (c *cluster) installer() (*copse.Installer, error) {
	kubectl := filepath.Join(c.config.BinDir, "kubectl")
	return copse.NewInstaller(kubectl, c.config.Dir.Kubeconfig(), c.config.Dir.Install(), c.access)
}
