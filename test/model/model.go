package model

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

const (
	namespace    = "ns"
	setName      = "set"
	templateHash = "hash"
	// tick is far longer than any back-off or memory of pkg/gang.
	tick = time.Hour
)

var cliqueNames = [maxCliques]string{"a", "b"}

// Decisions are the functions that decide. Tests put wrong ones in their place to see
// that they are found out.
type Decisions struct {
	Set     func(gang.SetSnapshot, time.Time) gang.SetDecision
	Clique  func(gang.CliqueSnapshot, time.Time) gang.CliqueDecision
	Missing func(*grovev1alpha1.PodClique, []gang.Pod) []int32
	Gate    func(gang.GateSnapshot, time.Time) gang.GateDecision
	Drained func(*grovev1alpha1.PodClique, []grovev1alpha1.PodClique, map[string]*grovev1alpha1.PodCliqueScalingGroup, int32) bool
}

// Real are the decisions of the product.
func Real() Decisions {
	return Decisions{Set: gang.DecideSet, Clique: gang.DecideClique, Missing: gang.MissingIndexes, Drained: gang.Drained, Gate: gang.DecideGate}
}

// Model is one world that can be explored.
type Model struct {
	config Config
	decide Decisions

	sets    table[grovev1alpha1.PodCliqueSet]
	cliques table[grovev1alpha1.PodClique]
	gates   table[grovev1alpha1.StartGate]

	// Decisions are pure, so each is made once for each snapshot.
	setDecisions    map[setKey]setDecision
	cliqueDecisions map[cliqueKey]cliqueDecision
	missing         map[cliqueKey]uint8
	breaches        map[confirmKey]bool
	drained         map[drainedKey]bool
	gateDecisions   map[gateKey]uint16
	raises          map[raiseKey]uint16
	refusals        map[update]string

	start state
}

// New makes a model of a world.
func New(config Config, decide Decisions) (*Model, error) {
	if len(config.Sizes) == 0 || len(config.Sizes) > maxCliques || config.pods() > maxPods || config.MaxRestarts >= maxAttempts-1 || config.Ticks > 3 {
		return nil, fmt.Errorf("%s does not fit into a state", config.Name)
	}
	m := &Model{
		config: config, decide: decide,
		setDecisions:    map[setKey]setDecision{},
		cliqueDecisions: map[cliqueKey]cliqueDecision{},
		missing:         map[cliqueKey]uint8{},
		breaches:        map[confirmKey]bool{},
		drained:         map[drainedKey]bool{},
		gateDecisions:   map[gateKey]uint16{},
		raises:          map[raiseKey]uint16{},
		refusals:        map[update]string{},
	}
	pcs := m.newSet()
	var err error
	if m.start.World.Set, err = m.sets.number(plainSet(pcs)); err != nil {
		return nil, err
	}
	for i := range config.Sizes {
		if m.start.World.Cliques[i], err = m.cliques.number(newClique(pcs, i)); err != nil {
			return nil, err
		}
	}
	m.start.World.Gate, err = m.gates.number(&grovev1alpha1.StartGate{})
	return m, err
}

// duration is how long some ticks are: a bit less, so that it has passed at the last one.
func duration(ticks uint8) metav1.Duration {
	return metav1.Duration{Duration: max(0, time.Duration(ticks)*tick-time.Minute)}
}

// now is the time at a tick; whole seconds, as in objects.
func now(at uint8) time.Time {
	return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(at) * tick)
}

func (m *Model) newSet() *grovev1alpha1.PodCliqueSet {
	pcs := &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setName, UID: setName, Generation: 1, ResourceVersion: "1", Finalizers: []string{labels.PodCliqueSetFinalizer}},
		Spec: grovev1alpha1.PodCliqueSetSpec{
			Replicas:     1,
			WorkloadType: grovev1alpha1.WorkloadTypeTraining,
			TrainingSpec: &grovev1alpha1.TrainingSpec{MaxRestarts: ptr.To(m.config.MaxRestarts)},
			Template:     grovev1alpha1.PodCliqueSetTemplateSpec{TerminationDelay: ptr.To(duration(m.config.TerminationDelay))},
		},
	}
	if m.config.MaxRuntime > 0 {
		pcs.Spec.TrainingSpec.MaxRuntime = ptr.To(duration(m.config.MaxRuntime))
	}
	if m.config.Barrier {
		pcs.Spec.GroupSchedulingConfig = &grovev1alpha1.GroupSchedulingConfig{}
	}
	for i, size := range m.config.Sizes {
		minAvailable := size
		if i < len(m.config.MinAvailable) && m.config.MinAvailable[i] > 0 {
			minAvailable = m.config.MinAvailable[i]
		}
		pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, grovev1alpha1.PodCliqueTemplateSpec{
			Name: cliqueNames[i],
			Spec: grovev1alpha1.PodCliqueSpec{Replicas: size, MinAvailable: ptr.To(minAvailable)},
		})
	}
	return pcs
}

// newClique is a PodClique as the replica controller makes it.
func newClique(pcs *grovev1alpha1.PodCliqueSet, i int) *grovev1alpha1.PodClique {
	name := naming.StandaloneClique(pcs.Name, 0, cliqueNames[i])
	clique := &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "1",
			Labels:     map[string]string{labels.ReplicaIndex: labels.Index(0)},
			Finalizers: []string{labels.PodCliqueFinalizer},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(pcs, grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet")),
			},
		},
		Spec: *pcs.Spec.Template.Cliques[i].Spec.DeepCopy(),
	}
	clique.Spec.WorkloadType = pcs.Spec.WorkloadType
	return clique
}

// owner is the clique of a pod, and its index there.
func (m *Model) owner(number int) (clique, index int) {
	for i, size := range m.config.Sizes {
		if number < int(size) {
			return i, number
		}
		number -= int(size)
	}
	return 0, 0
}

// numbers are those of a clique's pods: from first to before end.
func (m *Model) numbers(clique int) (first, end int) {
	for i := range clique {
		first += int(m.config.Sizes[i])
	}
	return first, first + int(m.config.Sizes[clique])
}

func (m *Model) attempt(set uint16) int32 { return gang.ReplicaAttempt(m.sets.objects[set], 0) }

func (m *Model) parent(set uint16) gang.Parent { return gang.ParentOf(m.sets.objects[set]) }
