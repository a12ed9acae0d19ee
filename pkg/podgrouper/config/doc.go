// Package config reads the configuration of the pod grouper: defaults per kind, kinds that
// are passed over, and rules without code. It is the data of a ConfigMap; what comes with
// the program is written in the same way, in shipped.yaml.
package config
