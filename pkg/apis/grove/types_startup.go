package grove

// StartupPolicyOrder names an order in which cliques start.
type StartupPolicyOrder string

const (
	// StartupPolicyAnyOrder starts all cliques at once. It is the default.
	StartupPolicyAnyOrder StartupPolicyOrder = "AnyOrder"
	// StartupPolicyInOrder starts the cliques in the order in which they are listed.
	StartupPolicyInOrder StartupPolicyOrder = "InOrder"
)

// StartupPolicy makes the cliques of a replica start one after the other (seed 003).
type StartupPolicy struct {
	StartupPolicyOrder StartupPolicyOrder
	Rules              []StartupPolicyRule
}

// CliqueStatus is what a later clique can wait for.
type CliqueStatus string

const (
	// CliqueStatusReady: every pod of the clique is Ready or Succeeded.
	CliqueStatusReady CliqueStatus = "Ready"
	// CliqueStatusSucceeded: every pod of the clique has exited with 0.
	CliqueStatusSucceeded CliqueStatus = "Succeeded"
)

// StartupPolicyRule gives cliques the status that the cliques after them wait for.
type StartupPolicyRule struct {
	TargetCliques        []string
	WaitForCliquesStatus CliqueStatus
}

// GroupSchedulingConfig holds main containers back until every pod of the gang has
// started (seed 002).
type GroupSchedulingConfig struct {
	TimeoutAfterSeconds *int32
	TargetCliques       []string
}

// CliqueStartupType names an order in which the containers of cliques start while all
// their pods exist.
type CliqueStartupType string

const (
	// CliqueStartupTypeAnyOrder holds no clique back. It is the default.
	CliqueStartupTypeAnyOrder CliqueStartupType = "CliqueStartupTypeAnyOrder"
	// CliqueStartupTypeInOrder holds each clique back until the one before it in the list is there.
	CliqueStartupTypeInOrder CliqueStartupType = "CliqueStartupTypeInOrder"
	// CliqueStartupTypeExplicit holds each clique back until those in its startsAfter are there.
	CliqueStartupTypeExplicit CliqueStartupType = "CliqueStartupTypeExplicit"
)
