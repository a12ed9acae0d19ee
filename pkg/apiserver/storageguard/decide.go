package storageguard

import (
	"fmt"
	"strings"
	"time"
)

// Reading is what one look at etcd shows.
type Reading struct {
	// ID is the identity of the storage, empty when it has none.
	ID string
	// Revision is etcd's revision.
	Revision int64
	// Cluster is the id that etcd gave its cluster: a restored snapshot has another one.
	Cluster uint64
	// Created is the revision at which the identity was given, 0 while there is none.
	Created int64
	// Term is etcd's raft term: another process has another one.
	Term uint64
}

// follows says that a reading can be of the same history as an earlier one. An identity that
// has come up meanwhile may be another server's, which was faster at the very first start; it
// was then given after the earlier reading, by the etcd that was read.
func (r Reading) follows(earlier Reading) bool {
	switch {
	case r.Cluster != earlier.Cluster, r.Revision < earlier.Revision:
		return false
	case r.ID == earlier.ID:
		return true
	}
	return earlier.ID == "" && r.Created > earlier.Revision && r.Term == earlier.Term
}

// Record is what the ConfigMap says. The zero Record stands for no ConfigMap.
type Record struct {
	// ID is the identity of the storage that the pods of this cluster belong to.
	ID string
	// Revision is the highest revision of it that any server has seen.
	Revision int64
	// Accepted is when somebody last accepted a storage by hand. Pods that are older are no
	// evidence any more.
	Accepted time.Time
	// Accept is the storage that somebody accepts, as Acceptance writes it.
	Accept string
	// Defect says what in the ConfigMap cannot be understood.
	Defect string
}

// Memory is what this process knows from earlier looks.
type Memory struct {
	// Verified says that the server has been open: evidence is asked for at the start only.
	Verified bool
	// ID and Revision are of the storage that was last found right, the latter the highest
	// that was seen.
	ID       string
	Revision int64
	// Accepted is that of the record by which it was found right.
	Accepted time.Time
}

// Finding is a pod that contradicts etcd.
type Finding struct {
	// Pod is its namespace and name.
	Pod string
	// Created is when it was made.
	Created time.Time
	// Problem says what etcd lacks.
	Problem string
}

// Evidence is what the cluster says against etcd.
type Evidence struct {
	// Definitions are the CustomResourceDefinitions of Copse's groups.
	Definitions []string
	// Findings are pods that etcd does not know the owner or the attempt of.
	Findings []Finding
}

// Situation is all that a decision depends on.
type Situation struct {
	Reading Reading
	Record  Record
	Memory  Memory
	// Evidence is nil when the cluster has not been asked for it.
	Evidence *Evidence
	// ConfigMap is where the record is, as namespace/name.
	ConfigMap string
}

// Step is what is to be done.
type Step string

// The steps.
const (
	// Shut keeps the server shut, or shuts it.
	Shut Step = "Shut"
	// Look asks for evidence, and then for another decision.
	Look Step = "Look"
	// Bootstrap gives etcd an identity, and records it.
	Bootstrap Step = "Bootstrap"
	// Recreate records the identity that etcd has, and warns.
	Recreate Step = "Recreate"
	// Accept records what somebody has accepted.
	Accept Step = "Accept"
	// Open lets requests in.
	Open Step = "Open"
)

// Reason says in one word why a server is shut.
type Reason string

// The reasons.
const (
	// ReasonUnverified is that something could not be read yet.
	ReasonUnverified Reason = "StorageNotVerified"
	// ReasonNoIdentity is that etcd has no identity though one is recorded: it is empty.
	ReasonNoIdentity Reason = "StorageHasNoIdentity"
	// ReasonOtherIdentity is that etcd has another identity than the recorded one.
	ReasonOtherIdentity Reason = "StorageIsAnother"
	// ReasonRevisionBehind is that etcd's revision is below the recorded one.
	ReasonRevisionBehind Reason = "StorageIsBehindRecord"
	// ReasonRevisionFell is that etcd's revision is below one that this process has seen.
	ReasonRevisionFell Reason = "StorageFellBack"
	// ReasonRecordDefect is that the ConfigMap cannot be understood.
	ReasonRecordDefect Reason = "RecordNotUnderstood"
	// ReasonLostObjects is that pods have owners or attempts that etcd lacks.
	ReasonLostObjects Reason = "StorageLacksOwnersOfPods"
	// ReasonForeignPods is the same before etcd has an identity: the pods are of another
	// installation.
	ReasonForeignPods Reason = "PodsOfAnotherInstallation"
	// ReasonDefinitions is that the cluster has CustomResourceDefinitions of Copse's groups.
	ReasonDefinitions Reason = "CustomResourceDefinitionsExist"
	// ReasonReplaced is that etcd was replaced while this process ran, which has to start
	// anew: its watch caches hold what the other etcd held.
	ReasonReplaced Reason = "StorageWasReplaced"
)

// Decision is a step, and for Shut why.
type Decision struct {
	Step    Step
	Reason  Reason
	Message string
}

// Decide says what follows from a situation.
func Decide(s Situation) Decision {
	accepted := accepts(s.Record.Accept, s.Reading)
	if problem := identityProblem(s); problem.Step == Shut && !accepted {
		return problem
	} else if problem.Step == Shut && s.Memory.Verified {
		return Decision{Step: Accept}
	} else if !s.Memory.Verified {
		if s.Evidence == nil {
			return Decision{Step: Look}
		}
		// A definition is removed, not accepted: whoever asks for its objects would ask
		// this server, which does not have them.
		if len(s.Evidence.Definitions) > 0 {
			return definitionsProblem(s)
		}
		if contradiction := podsProblem(s); contradiction.Step == Shut && !accepted {
			return contradiction
		} else if contradiction.Step == Shut || problem.Step == Shut {
			return Decision{Step: Accept}
		}
	}
	switch {
	case s.Reading.ID == "":
		return Decision{Step: Bootstrap}
	case s.Record.ID == "":
		return Decision{Step: Recreate}
	}
	return Decision{Step: Open}
}

// identityProblem compares etcd with what is recorded and remembered.
func identityProblem(s Situation) Decision {
	// What was accepted after this process had found its storage right makes its memory void.
	remembers := s.Memory.Verified && s.Memory.Accepted.Equal(s.Record.Accepted)
	switch {
	case s.Record.Defect != "":
		return shut(s, ReasonRecordDefect, fmt.Sprintf("ConfigMap %s cannot be understood: %s", s.ConfigMap, s.Record.Defect))
	case s.Record.ID != "" && s.Reading.ID == "":
		return shut(s, ReasonNoIdentity, fmt.Sprintf("etcd has no identity: it is empty, or its prefix is wrong; ConfigMap %s says that its identity is %s", s.ConfigMap, s.Record.ID))
	case s.Record.ID != "" && s.Reading.ID != s.Record.ID:
		return shut(s, ReasonOtherIdentity, fmt.Sprintf("etcd has the identity %s, and ConfigMap %s says that it is %s: this is another etcd, or the ConfigMap of another installation", s.Reading.ID, s.ConfigMap, s.Record.ID))
	case s.Reading.Revision < s.Record.Revision:
		return shut(s, ReasonRevisionBehind, fmt.Sprintf("etcd is at revision %d and was at %d before, as ConfigMap %s says: it was restored from an older backup", s.Reading.Revision, s.Record.Revision, s.ConfigMap))
	case remembers && s.Reading.ID != s.Memory.ID:
		return shut(s, ReasonOtherIdentity, fmt.Sprintf("etcd has the identity %s and had %s before: it was replaced", nameOf(s.Reading.ID), s.Memory.ID))
	case remembers && s.Reading.Revision < s.Memory.Revision:
		return shut(s, ReasonRevisionFell, fmt.Sprintf("etcd is at revision %d, and this server has seen it at %d: it was restored from an older backup", s.Reading.Revision, s.Memory.Revision))
	}
	return Decision{}
}

func definitionsProblem(s Situation) Decision {
	return Decision{Step: Shut, Reason: ReasonDefinitions, Message: fmt.Sprintf(
		"the cluster has CustomResourceDefinitions of the groups that this server serves: %s. To the garbage collector their objects would seem to be gone. %s, until they are: "+
			"export the objects, end their workloads and delete the definitions",
		some(s.Evidence.Definitions), stake)}
}

func podsProblem(s Situation) Decision {
	var pods []string
	for _, finding := range s.Evidence.Findings {
		// Pods were seen, and given up, when the storage was accepted.
		if finding.Created.Before(s.Record.Accepted) {
			continue
		}
		pods = append(pods, fmt.Sprintf("%s, %s", finding.Pod, finding.Problem))
	}
	switch {
	case len(pods) == 0:
		return Decision{}
	case s.Reading.ID == "":
		return shut(s, ReasonForeignPods, fmt.Sprintf("etcd is new, and there are pods whose owners it lacks: %s: they belong to another installation, or to an etcd that is lost", some(pods)))
	}
	return shut(s, ReasonLostObjects, fmt.Sprintf("etcd lacks what pods belong to: %s: it was restored from an older backup", some(pods)))
}

// stake says what would happen otherwise.
const stake = "Every request is answered with 503, so that no pod is deleted"

// shut says why, and names the ways out.
func shut(s Situation, reason Reason, fact string) Decision {
	namespace, name, _ := strings.Cut(s.ConfigMap, "/")
	return Decision{Step: Shut, Reason: reason, Message: fmt.Sprintf(
		"%s. %s, until the right etcd is back, or this one is accepted, which lets the pods go that it does not know: "+
			"kubectl -n %s annotate configmap %s %s=%s (create the ConfigMap if there is none)",
		fact, stake, namespace, name, AcceptAnnotation, Acceptance(s.Reading))}
}

// some names the first of many.
func some(items []string) string {
	const told = 3
	if len(items) <= told {
		return strings.Join(items, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(items[:told], "; "), len(items)-told)
}

// nobody stands for the identity of a storage that has none.
const nobody = "none"

func nameOf(id string) string {
	if id == "" {
		return nobody
	}
	return id
}

// Acceptance names a storage as it is now, for whoever accepts it.
func Acceptance(r Reading) string {
	return fmt.Sprintf("%s@%d", nameOf(r.ID), r.Revision)
}

// accepts says whether an acceptance is of this storage. A shut server writes nothing,
// but etcd's own upkeep may raise the revision; one that has fallen further since is
// not what was accepted.
func accepts(acceptance string, r Reading) bool {
	id, text, found := strings.Cut(acceptance, "@")
	revision, ok := parseRevision(text)
	return found && ok && id == nameOf(r.ID) && revision <= r.Revision
}
