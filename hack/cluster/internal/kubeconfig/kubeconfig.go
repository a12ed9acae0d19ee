package kubeconfig

import (
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// User is how a client proves who it is: a certificate or a token.
type User struct {
	Name              string
	CertFile, KeyFile string
	Token             string
}

// Write writes a kubeconfig file for the user of the API server at the URL.
func Write(path, server, caFile string, user User) error {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	auth := api.NewAuthInfo()
	auth.Token = user.Token
	if user.CertFile != "" {
		if auth.ClientCertificateData, err = os.ReadFile(user.CertFile); err != nil {
			return err
		}
		if auth.ClientKeyData, err = os.ReadFile(user.KeyFile); err != nil {
			return err
		}
	}

	const cluster = "copse-test"
	config := api.NewConfig()
	config.Clusters[cluster] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[user.Name] = auth
	config.Contexts[cluster] = &api.Context{Cluster: cluster, AuthInfo: user.Name}
	config.CurrentContext = cluster
	return clientcmd.WriteToFile(*config, path)
}
