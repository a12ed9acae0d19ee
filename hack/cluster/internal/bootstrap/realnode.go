package bootstrap

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/copse-dev/copse/hack/cluster/internal/components"
	"github.com/copse-dev/copse/hack/cluster/internal/image"
	"github.com/copse-dev/copse/hack/cluster/internal/nodes"
	"github.com/copse-dev/copse/hack/cluster/internal/realnode"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// testProgram is the program in the image that real nodes begin with.
const testProgram = "testpod"

// prepareRealNode makes what the programs of the real node expect of the machine,
// and their configuration files.
func prepareRealNode(config *components.Config) error {
	var err error
	if config.PluginDir, err = realnode.PluginDir(); err != nil {
		return err
	}
	if err := realnode.SetUp(config.Dir, config.Node); err != nil {
		return err
	}
	kubelet, err := yaml.Marshal(components.KubeletConfig(*config))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(config.Dir.Node("net.d"), 0o700); err != nil {
		return err
	}
	for path, content := range map[string]string{
		config.Dir.Node("containerd.toml"):        components.ContainerdConfig(*config),
		config.Dir.Node("net.d", "pods.conflist"): components.NetworkConfig(*config),
		config.Dir.Node("kubelet.yaml"):           string(kubelet),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// startRealNode starts the node and waits until it takes pods.
func (c *cluster) startRealNode(ctx context.Context) error {
	began := time.Now()
	if err := c.run(components.PodGateway); err != nil {
		return err
	}
	if err := c.runAndAwait(ctx, components.Containerd); err != nil {
		return err
	}
	if err := c.loadTestImage(ctx); err != nil {
		return err
	}
	if err := c.runAndAwait(ctx, components.Kubelet); err != nil {
		return err
	}
	if err := nodes.WaitReady(ctx, c.client, components.RealNodeValue, 1); err != nil {
		return err
	}
	if err := c.await(ctx, components.PodGateway); err != nil {
		return err
	}
	c.report("%s is ready after %.1f s", c.config.Node.Name, time.Since(began).Seconds())
	return nil
}

// loadTestImage loads the image that keeps pods' namespaces, and that tests run.
func (c *cluster) loadTestImage(ctx context.Context) error {
	program, err := os.ReadFile(filepath.Join(c.config.BinDir, testProgram))
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := image.Pack(&archive, c.config.Node.Image, testProgram, program, "wait-term"); err != nil {
		return err
	}
	_, err = image.Load(ctx, c.config.Dir.Containerd(), &archive, "")
	return err
}

// CleanRealNode ends what outlives the programs of the real node of a cluster
// that does not run.
func CleanRealNode(ctx context.Context, dir state.Dir) error {
	cluster, err := dir.Load()
	if err != nil || !cluster.RealNode.Exists() {
		return err
	}
	return realnode.Clean(ctx, dir, cluster.RealNode)
}
