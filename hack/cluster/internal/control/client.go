package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// Client sends commands to the supervisor of a cluster.
type Client struct {
	http http.Client
}

// NewClient returns a client of the cluster in that folder. It connects at
// each command.
func NewClient(dir state.Dir) *Client {
	return &Client{http: http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx, dir.ControlSocket())
		},
	}}}
}

// Status asks for the state of the cluster.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	body, err := c.do(ctx, http.MethodGet, "/status")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}

// Stop stops a component.
func (c *Client) Stop(ctx context.Context, name string, grace time.Duration) error {
	return c.post(ctx, "/components/"+url.PathEscape(name)+"/stop?grace="+grace.String())
}

// Start starts a component, and waits until it is healthy if that is wished.
func (c *Client) Start(ctx context.Context, name string, wait bool) error {
	return c.post(ctx, "/components/"+url.PathEscape(name)+"/start?wait="+strconv.FormatBool(wait))
}

// Kill kills a component.
func (c *Client) Kill(ctx context.Context, name string) error {
	return c.post(ctx, "/components/"+url.PathEscape(name)+"/kill")
}

// Shutdown asks the supervisor to end, and does not wait for it.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.post(ctx, "/shutdown")
}

func (c *Client) post(ctx context.Context, path string) error {
	_, err := c.do(ctx, http.MethodPost, path)
	return err
}

func (c *Client) do(ctx context.Context, method, path string) ([]byte, error) {
	// The host has no meaning: there is one supervisor behind a socket.
	req, err := http.NewRequestWithContext(ctx, method, "http://cluster"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(body)))
	}
	return body, nil
}
