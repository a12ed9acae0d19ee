// Package image brings container images to a node without a registry: it packs
// a program into one, and loads files and folders with images into containerd.
package image
