package lots

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// Lot is a set that was drawn.
type Lot struct {
	Seed uint64
	Set  *grovev1alpha1.PodCliqueSet
	// Mistake says what is wrong with the set, and Field where: the beginning of a field's
	// path. Both are empty when it has to be admitted.
	Mistake, Field string
	// TooBig is a clique whose pods fit on no node; empty when there is none.
	TooBig string
}

// Bounds keep sets small.
type Bounds struct {
	// Pods is how many pods a set has at most.
	Pods int
	// TooBig is how often a clique fits on no node: in one of so many sets; 0 for never.
	TooBig int
	// Timeouts are how many seconds a start barrier has, the fewest and the most.
	Timeouts [2]int32
}

// hugeCPU is more than a node has.
const hugeCPU = "100000"

// Draw draws the set of a seed: always the same one.
func Draw(seed uint64, bounds Bounds) Lot {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 0x5eed)), bounds: bounds}
	for d.set == nil || CountPods(d.set) > bounds.Pods {
		d.set = &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("lot-%d", seed)}}
		d.all()
	}
	lot := Lot{Seed: seed, Set: d.set}
	if d.oneIn(4) {
		mistakes := mistakes()
		m := mistakes[d.IntN(len(mistakes))]
		if field, made := m.make(d); made {
			lot.Mistake, lot.Field = m.name, field
			return lot
		}
	}
	if bounds.TooBig > 0 && d.oneIn(bounds.TooBig) {
		clique := d.clique()
		lot.TooBig = clique.Name
		clique.Spec.PodSpec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(hugeCPU)}
	}
	return lot
}

// CountPods is how many pods the template of a set asks for.
func CountPods(set *grovev1alpha1.PodCliqueSet) int {
	pods := 0
	for i := range set.Spec.Template.Cliques {
		clique := &set.Spec.Template.Cliques[i]
		copies := int32(1)
		for _, group := range set.Spec.Template.PodCliqueScalingGroups {
			for _, name := range group.CliqueNames {
				if name == clique.Name {
					copies = ptr.Deref(group.Replicas, 1)
				}
			}
		}
		pods += int(set.Spec.Replicas * copies * clique.Spec.Replicas)
	}
	return pods
}

// FitsNowhere says that a pod asks for more than a node has.
func FitsNowhere(pod *corev1.PodSpec) bool {
	cpu := pod.Containers[0].Resources.Requests.Cpu()
	return cpu.Cmp(resource.MustParse(hugeCPU)) >= 0
}

// draw is a set that is being drawn.
type draw struct {
	*rand.Rand
	bounds Bounds
	set    *grovev1alpha1.PodCliqueSet
}

func (d *draw) oneIn(n int) bool { return d.IntN(n) == 0 }

// upTo is a number from 1 to n.
func (d *draw) upTo(n int32) int32 { return 1 + d.Int32N(n) }

func (d *draw) template() *grovev1alpha1.PodCliqueSetTemplateSpec { return &d.set.Spec.Template }

// clique is one of the cliques.
func (d *draw) clique() *grovev1alpha1.PodCliqueTemplateSpec {
	return &d.template().Cliques[d.IntN(len(d.template().Cliques))]
}

// names are those of the cliques, in their order.
func (d *draw) names() []string {
	var names []string
	for i := range d.template().Cliques {
		names = append(names, d.template().Cliques[i].Name)
	}
	return names
}

func (d *draw) isTraining() bool {
	return d.set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining
}

// all draws a set without a mistake.
func (d *draw) all() {
	spec := &d.set.Spec
	spec.Replicas, spec.WorkloadType = 1, grovev1alpha1.WorkloadTypeInference
	if d.oneIn(4) {
		spec.Replicas = 2
	}
	if d.oneIn(2) {
		spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining
	}
	d.lifetime()
	for i := range d.upTo(6) {
		d.template().Cliques = append(d.template().Cliques, d.newClique(fmt.Sprintf("c%d", i)))
	}
	d.groups()
	d.order()
	if d.oneIn(2) {
		d.barrier()
	}
}

func (d *draw) lifetime() {
	spec := &d.set.Spec
	switch {
	case d.isTraining():
		if d.oneIn(4) {
			break
		}
		spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRestarts: ptr.To(d.Int32N(3))}
		if d.oneIn(8) {
			spec.TrainingSpec.MaxRuntime = &metav1.Duration{Duration: time.Duration(d.upTo(120)) * time.Second}
		}
		if d.oneIn(4) {
			spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Duration(d.Int32N(20)) * time.Second}
		}
	case d.oneIn(2):
		spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Duration(d.upTo(30)) * time.Second}
	}
}

func (d *draw) newClique(name string) grovev1alpha1.PodCliqueTemplateSpec {
	clique := grovev1alpha1.PodCliqueTemplateSpec{Name: name, Spec: grovev1alpha1.PodCliqueSpec{
		Replicas: d.upTo(5),
		PodSpec:  corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	}}
	if d.oneIn(2) {
		clique.Spec.MinAvailable = ptr.To(d.upTo(clique.Spec.Replicas))
	}
	if d.oneIn(3) {
		clique.Spec.PodSpec.RestartPolicy = corev1.RestartPolicyAlways
		if d.isTraining() {
			clique.Spec.PodSpec.RestartPolicy = []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}[d.IntN(2)]
		}
	}
	return clique
}

// groups puts some of the cliques into up to two scaling groups.
func (d *draw) groups() {
	var members [2][]string
	for _, name := range d.names() {
		if place := d.IntN(5); place < len(members) {
			members[place] = append(members[place], name)
		}
	}
	for i, names := range members {
		if len(names) == 0 {
			continue
		}
		group := grovev1alpha1.PodCliqueScalingGroupConfig{Name: fmt.Sprintf("g%d", i), CliqueNames: names}
		if !d.oneIn(4) {
			group.Replicas = ptr.To(d.upTo(3))
		}
		if d.oneIn(2) {
			group.MinAvailable = ptr.To(d.upTo(ptr.Deref(group.Replicas, 1)))
		}
		d.template().PodCliqueScalingGroups = append(d.template().PodCliqueScalingGroups, group)
	}
}

// order draws in which order the cliques start.
func (d *draw) order() {
	spec := &d.set.Spec
	switch d.IntN(6) {
	case 0:
		if d.oneIn(2) {
			spec.Template.StartupType = ptr.To(grovev1alpha1.CliqueStartupTypeAnyOrder)
		}
		if d.oneIn(4) {
			spec.StartupPolicy = &grovev1alpha1.StartupPolicy{StartupPolicyOrder: grovev1alpha1.StartupPolicyAnyOrder}
		}
	case 1:
		spec.Template.StartupType = ptr.To(grovev1alpha1.CliqueStartupTypeInOrder)
	case 2, 3:
		spec.Template.StartupType = ptr.To(grovev1alpha1.CliqueStartupTypeExplicit)
		d.graph()
	case 4, 5:
		spec.StartupPolicy = &grovev1alpha1.StartupPolicy{StartupPolicyOrder: grovev1alpha1.StartupPolicyInOrder, Rules: d.rules()}
	}
}

// graph draws which clique starts after which, without a circle: only after those before it
// in an order of their own.
func (d *draw) graph() {
	order := d.Perm(len(d.template().Cliques))
	for place, i := range order {
		for _, before := range order[:place] {
			if d.oneIn(3) {
				clique := &d.template().Cliques[i]
				clique.Spec.StartsAfter = append(clique.Spec.StartsAfter, d.template().Cliques[before].Name)
			}
		}
	}
}

// rules draws what is waited for: of each clique but the last, in any order; or nothing is
// said, which is Ready for all.
func (d *draw) rules() []grovev1alpha1.StartupPolicyRule {
	names := d.names()
	names = names[:len(names)-1]
	if d.oneIn(4) {
		return nil
	}
	d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var rules []grovev1alpha1.StartupPolicyRule
	for len(names) > 0 {
		n := d.upTo(int32(len(names)))
		rule := grovev1alpha1.StartupPolicyRule{TargetCliques: names[:n:n], WaitForCliquesStatus: grovev1alpha1.CliqueStatusReady}
		if d.isTraining() && d.oneIn(2) {
			rule.WaitForCliquesStatus = grovev1alpha1.CliqueStatusSucceeded
		}
		rules, names = append(rules, rule), names[n:]
	}
	return rules
}

// barrier draws cliques that start together: none of them waits for another.
func (d *draw) barrier() {
	config := &grovev1alpha1.GroupSchedulingConfig{}
	if !d.oneIn(3) {
		least, most := d.bounds.Timeouts[0], d.bounds.Timeouts[1]
		config.TimeoutAfterSeconds = ptr.To(least + d.Int32N(most-least+1))
	}
	var targets []string
	for _, i := range d.Perm(len(d.template().Cliques)) {
		name := d.template().Cliques[i].Name
		if len(targets) > 0 && (d.oneIn(2) || d.isOrdered(name, targets)) {
			continue
		}
		targets = append(targets, name)
		d.template().Cliques[i].Spec.MinAvailable = nil
	}
	// All of them may as well go without their names.
	if len(targets) < len(d.template().Cliques) || d.oneIn(2) {
		config.TargetCliques = targets
	}
	d.set.Spec.GroupSchedulingConfig = config
}

// isOrdered says that a clique waits for one of others, or one of them for it.
func (d *draw) isOrdered(name string, others []string) bool {
	policy := d.set.Spec.StartupPolicy
	switch {
	case policy != nil && policy.StartupPolicyOrder == grovev1alpha1.StartupPolicyInOrder:
		return true
	case d.template().StartupType == nil:
		return false
	case *d.template().StartupType == grovev1alpha1.CliqueStartupTypeInOrder:
		return true
	}
	for _, other := range others {
		if d.waitsFor(name, other) || d.waitsFor(other, name) {
			return true
		}
	}
	return false
}

// waitsFor says that one clique starts after another, or after one that does.
func (d *draw) waitsFor(name, other string) bool {
	for i := range d.template().Cliques {
		if clique := &d.template().Cliques[i]; clique.Name == name {
			for _, before := range clique.Spec.StartsAfter {
				if before == other || d.waitsFor(before, other) {
					return true
				}
			}
		}
	}
	return false
}
