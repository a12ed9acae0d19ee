package bootstrap

import (
	"context"
	"os"
	"time"

	"github.com/copse-dev/copse/hack/cluster/internal/certs"
	"github.com/copse-dev/copse/hack/cluster/internal/components"
	"github.com/copse-dev/copse/hack/cluster/internal/kubeconfig"
	"github.com/copse-dev/copse/hack/cluster/internal/ports"
	"github.com/copse-dev/copse/hack/cluster/internal/realnode"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
	"github.com/copse-dev/copse/hack/cluster/stages"
)

// prepare fills the state folder and returns what the components' flags depend on.
func prepare(ctx context.Context, o Options) (components.Config, error) {
	previous, err := o.Dir.Load()
	if err != nil {
		return components.Config{}, err
	}
	config := components.Config{
		Dir:       o.Dir,
		BinDir:    o.BinDir,
		Port:      map[string]int{},
		ExtraPort: map[string]int{},
		Verbosity: o.Verbosity,
		ExtraArgs: o.ExtraArgs,
	}
	if err := choosePorts(components.Names(o.parts()), previous, &config); err != nil {
		return config, err
	}
	if o.RealNode {
		if config.Node, err = realnode.Claim(ctx, o.Dir, previous.RealNode); err != nil {
			return config, err
		}
	}
	if err := o.Dir.Certs().Ensure(config.ServiceIP(), certs.Node{Name: config.Node.Name, Address: config.Node.Address}); err != nil {
		return config, err
	}
	if err := writeKubeconfigs(config); err != nil {
		return config, err
	}
	stages, err := stages.Config()
	if err != nil {
		return config, err
	}
	if err := os.WriteFile(o.Dir.KWOKConfig(), stages, 0o600); err != nil {
		return config, err
	}
	if err := save(o, config); err != nil || !o.RealNode {
		return config, err
	}
	return config, prepareRealNode(&config)
}

// choosePorts takes the ports of the last time if they are still free: then
// clients that have seen the cluster before find it again. The ports stay
// reserved for the life of this process.
func choosePorts(names []string, previous state.Cluster, config *components.Config) error {
	for _, name := range names {
		port, err := ports.Reserve(previous.Components[name].Port)
		if err != nil {
			return err
		}
		config.Port[name] = port.Number
		if name == components.CopseControllerManager {
			if port, err = ports.Reserve(previous.Components[name].WebhookPort); err != nil {
				return err
			}
			config.WebhookPort = port.Number
		}
		if !components.NeedsExtraPort(name) {
			continue
		}
		if port, err = ports.Reserve(previous.Components[name].ExtraPort); err != nil {
			return err
		}
		config.ExtraPort[name] = port.Number
	}
	return nil
}

func writeKubeconfigs(config components.Config) error {
	keys := config.Dir.Certs()
	users := []struct{ identity, path string }{
		{certs.Admin, config.Dir.Kubeconfig()},
		{certs.ControllerManager, config.Dir.KubeconfigOf(components.KubeControllerManager)},
		{certs.Scheduler, config.Dir.KubeconfigOf(components.KubeScheduler)},
		{certs.KWOK, config.Dir.KubeconfigOf(components.KWOK)},
	}
	if config.Node.Exists() {
		users = append(users, struct{ identity, path string }{certs.Kubelet, config.Dir.KubeconfigOf(components.Kubelet)})
	}
	for _, c := range users {
		user := kubeconfig.User{Name: c.identity, CertFile: keys.Cert(c.identity), KeyFile: keys.Key(c.identity)}
		if err := kubeconfig.Write(c.path, config.Server(), keys.Cert(certs.ClusterCA), user); err != nil {
			return err
		}
	}
	return nil
}

// save writes cluster.json.
func save(o Options, config components.Config) error {
	cluster := state.Cluster{
		Dir:           string(o.Dir),
		BinDir:        o.BinDir,
		PID:           os.Getpid(),
		Started:       time.Now(),
		Server:        config.Server(),
		Kubeconfig:    o.Dir.Kubeconfig(),
		CertDir:       string(o.Dir.Certs()),
		CAFile:        o.Dir.Certs().Cert(certs.ClusterCA),
		ControlSocket: o.Dir.ControlSocket(),
		RealNode:      config.Node,
		Copse:         o.Copse,
		Components:    map[string]state.Component{},
	}
	if o.KWOK {
		cluster.Nodes = o.Nodes
	}
	for _, name := range components.Names(o.parts()) {
		c, err := components.New(name, config)
		if err != nil {
			return err
		}
		cluster.Components[name] = c.Info
	}
	return o.Dir.Save(cluster)
}
