package certs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Names of the identities; each is a file <name>.crt with a <name>.key.
const (
	ClusterCA         = "ca"
	FrontProxyCA      = "front-proxy-ca"
	FrontProxyClient  = "front-proxy-client"
	APIServer         = "kube-apiserver"
	Component         = "component" // serving certificate of everything but the API servers
	Admin             = "admin"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	KWOK              = "kwok"
	Kubelet           = "kubelet"
	KubeletServer     = "kubelet-server"
	KubeletClient     = "kube-apiserver-kubelet-client" // kube-apiserver as a client of the kubelet
	CopseCA           = "copse-ca"
	Copse             = "copse-apiserver"

	// ServiceAccount signs tokens; its other half is <name>.pub.
	ServiceAccount = "service-account"
)

// complete marks a folder in which everything was written.
const complete = "complete"

// Folder is the folder that holds keys and certificates.
type Folder string

// Cert is the file of a certificate.
func (f Folder) Cert(name string) string { return filepath.Join(string(f), name+".crt") }

// Key is the file of a private key.
func (f Folder) Key(name string) string { return filepath.Join(string(f), name+".key") }

// PublicKey is the file of a public key.
func (f Folder) PublicKey(name string) string { return filepath.Join(string(f), name+".pub") }

// Node is what the identity of a kubelet depends on.
type Node struct {
	Name, Address string
}

// Ensure fills the folder unless that is done. clusterIP is the address of the
// Service "kubernetes", by which pods reach the API server. The node may be none.
func (f Folder) Ensure(clusterIP string, node Node) error {
	mark := filepath.Join(string(f), complete)
	if _, err := os.Stat(mark); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	for _, fill := range []func() error{
		func() error { return f.fillCluster(clusterIP, node) },
		f.fillFrontProxy,
		f.fillCopse,
		f.fillServiceAccount,
	} {
		if err := fill(); err != nil {
			return err
		}
	}
	return os.WriteFile(mark, nil, 0o600)
}

// fillCluster makes the cluster's authority and the identities of the control plane.
func (f Folder) fillCluster(clusterIP string, node Node) error {
	ca, err := f.authority(ClusterCA, "kubernetes")
	if err != nil {
		return err
	}
	if err := f.write(APIServer)(ca.newServer("kube-apiserver", "localhost", "127.0.0.1", clusterIP,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")); err != nil {
		return err
	}
	if err := f.write(Component)(ca.newServer("component", "localhost", "127.0.0.1")); err != nil {
		return err
	}
	for _, c := range []struct{ name, user, group string }{
		{Admin, "kubernetes-admin", "system:masters"},
		{ControllerManager, "system:kube-controller-manager", ""},
		{Scheduler, "system:kube-scheduler", ""},
		// KWOK acts as the kubelet of every node that it plays, which no
		// single node's identity may do.
		{KWOK, "kwok", "system:masters"},
		{KubeletClient, "kube-apiserver-kubelet-client", "system:masters"},
	} {
		var groups []string
		if c.group != "" {
			groups = []string{c.group}
		}
		if err := f.write(c.name)(ca.newClient(c.user, groups...)); err != nil {
			return err
		}
	}
	if node.Name == "" {
		return nil
	}
	// The authorizer of nodes goes by this name and group.
	return errors.Join(
		f.write(Kubelet)(ca.newClient("system:node:"+node.Name, "system:nodes")),
		f.write(KubeletServer)(ca.newServer(node.Name, node.Name, node.Address)))
}

// fillFrontProxy makes what the API server proves itself with to aggregated
// servers. Its authority must not be the cluster's: a client certificate of
// the cluster would then be able to speak for any user.
func (f Folder) fillFrontProxy() error {
	ca, err := f.authority(FrontProxyCA, "front-proxy")
	if err != nil {
		return err
	}
	return f.write(FrontProxyClient)(ca.newClient(FrontProxyClient))
}

func (f Folder) fillCopse() error {
	ca, err := f.authority(CopseCA, "copse")
	if err != nil {
		return err
	}
	return f.write(Copse)(ca.newServer("copse-apiserver",
		"copse-apiserver.copse-system.svc", "copse-apiserver.copse-system.svc.cluster.local", "localhost", "127.0.0.1"))
}

func (f Folder) fillServiceAccount() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	return errors.Join(
		writeKey(f.Key(ServiceAccount), key),
		writePublicKey(f.PublicKey(ServiceAccount), key.Public()))
}

func (f Folder) authority(name, subject string) (pair, error) {
	ca, err := newAuthority(subject)
	return ca, f.write(name)(ca, err)
}

// write returns a function that takes the results of making a pair and writes it.
func (f Folder) write(name string) func(pair, error) error {
	return func(p pair, err error) error {
		if err != nil {
			return err
		}
		return errors.Join(writeCert(f.Cert(name), p.cert), writeKey(f.Key(name), p.key))
	}
}
