package v1alpha1

// StartupPolicyOrder names an order in which cliques start.
// +enum
type StartupPolicyOrder string

const (
	// StartupPolicyAnyOrder starts all cliques at once. It is the default.
	StartupPolicyAnyOrder StartupPolicyOrder = "AnyOrder"
	// StartupPolicyInOrder starts the cliques in the order in which they are listed.
	StartupPolicyInOrder StartupPolicyOrder = "InOrder"
)

// StartupPolicy makes the cliques of a replica start one after the other.
type StartupPolicy struct {
	// startupPolicyOrder defaults to AnyOrder.
	// +optional
	StartupPolicyOrder StartupPolicyOrder `json:"startupPolicyOrder,omitempty"`
	// rules say which status each clique but the last has to reach before the next one
	// starts. Defaults to Ready for all but the last. The order is that of the cliques,
	// whatever the order of the rules.
	// +optional
	// +listType=atomic
	Rules []StartupPolicyRule `json:"rules,omitempty"`
}

// CliqueStatus is what a later clique can wait for.
// +enum
type CliqueStatus string

const (
	// CliqueStatusReady: every pod of the clique is Ready or Succeeded.
	CliqueStatusReady CliqueStatus = "Ready"
	// CliqueStatusSucceeded: every pod of the clique has exited with 0.
	CliqueStatusSucceeded CliqueStatus = "Succeeded"
)

// WaitingForStarted is the status in waitingFor of a clique that keeps a start barrier
// shut: not all of its pods have come there.
const WaitingForStarted = "Started"

// StartupPolicyRule gives cliques the status that the cliques after them wait for.
type StartupPolicyRule struct {
	// targetCliques are names of cliques of the template.
	// +listType=atomic
	TargetCliques []string `json:"targetCliques"`
	// waitForCliquesStatus defaults to Ready.
	// +optional
	WaitForCliquesStatus CliqueStatus `json:"waitForCliquesStatus,omitempty"`
}

// GroupSchedulingConfig holds main containers back until every pod of the gang has
// started.
type GroupSchedulingConfig struct {
	// timeoutAfterSeconds is how many seconds after the first pod of a gang started the
	// attempt fails if not all have. Nil means no deadline.
	// +optional
	TimeoutAfterSeconds *int32 `json:"timeoutAfterSeconds,omitempty"`
	// targetCliques are the cliques that wait for each other. Empty means all.
	// +optional
	// +listType=atomic
	TargetCliques []string `json:"targetCliques,omitempty"`
}

// CliqueStartupType names an order in which the containers of cliques start while all
// their pods exist.
// +enum
type CliqueStartupType string

const (
	// CliqueStartupTypeAnyOrder holds no clique back. It is the default.
	CliqueStartupTypeAnyOrder CliqueStartupType = "CliqueStartupTypeAnyOrder"
	// CliqueStartupTypeInOrder holds each clique back until the one before it in the list is there.
	CliqueStartupTypeInOrder CliqueStartupType = "CliqueStartupTypeInOrder"
	// CliqueStartupTypeExplicit holds each clique back until those in its startsAfter are there.
	CliqueStartupTypeExplicit CliqueStartupType = "CliqueStartupTypeExplicit"
)
