package replica

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

func ownedBySet(pcs *grovev1alpha1.PodCliqueSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(pcs, grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet"))
}

// desiredService is the headless Service by which the pods of a replica find each other.
func desiredService(pcs *grovev1alpha1.PodCliqueSet, replica int32) *corev1.Service {
	name := naming.Replica(pcs.Name, replica)
	publishNotReady := true
	if config := pcs.Spec.Template.HeadlessServiceConfig; config != nil {
		publishNotReady = ptr.Deref(config.PublishNotReadyAddresses, true)
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       pcs.Namespace,
			Labels:          labels.ForReplica(name, pcs.Name, labels.ComponentHeadlessService, replica),
			OwnerReferences: []metav1.OwnerReference{ownedBySet(pcs)},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector: map[string]string{
				labels.PartOf:       pcs.Name,
				labels.ManagedBy:    labels.ManagedByValue,
				labels.ReplicaIndex: labels.Index(replica),
			},
			PublishNotReadyAddresses: publishNotReady,
		},
	}
}

// serviceAsWanted is a Service as it should be, nil if it is. What people and the server write
// beside what is ours stays.
func serviceAsWanted(service, want *corev1.Service) client.Object {
	isSame := service.Spec.PublishNotReadyAddresses == want.Spec.PublishNotReadyAddresses && apiequality.Semantic.DeepEqual(service.Spec.Selector, want.Spec.Selector)
	if service.DeletionTimestamp != nil || (isSame && hasLabels(service, want.Labels)) {
		return nil
	}
	updated := service.DeepCopy()
	updated.Spec.PublishNotReadyAddresses = want.Spec.PublishNotReadyAddresses
	updated.Spec.Selector = want.Spec.Selector
	setLabels(updated, want.Labels)
	return updated
}

// withLabels is an object with the labels by which the cache and people find it, nil if it has
// them.
func withLabels(obj client.Object, want map[string]string) client.Object {
	if obj.GetDeletionTimestamp() != nil || hasLabels(obj, want) {
		return nil
	}
	updated := obj.DeepCopyObject().(client.Object)
	setLabels(updated, want)
	return updated
}

func hasLabels(obj client.Object, want map[string]string) bool {
	have := obj.GetLabels()
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

func setLabels(obj client.Object, want map[string]string) {
	all := map[string]string{}
	maps.Copy(all, obj.GetLabels())
	maps.Copy(all, want)
	obj.SetLabels(all)
}

// desiredScalingGroup is a scaling group of a replica, with the size of the template.
func desiredScalingGroup(pcs *grovev1alpha1.PodCliqueSet, replica int32, config *grovev1alpha1.PodCliqueScalingGroupConfig) *grovev1alpha1.PodCliqueScalingGroup {
	name := naming.ScalingGroup(pcs.Name, replica, config.Name)
	return &grovev1alpha1.PodCliqueScalingGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       pcs.Namespace,
			Labels:          labels.ForReplica(name, pcs.Name, labels.ComponentScalingGroup, replica),
			Annotations:     maps.Clone(config.Annotations),
			OwnerReferences: []metav1.OwnerReference{ownedBySet(pcs)},
		},
		Spec: grovev1alpha1.PodCliqueScalingGroupSpec{
			Replicas:     ptr.Deref(config.Replicas, 1),
			MinAvailable: ptr.To(ptr.Deref(config.MinAvailable, 1)),
			CliqueNames:  config.CliqueNames,
			WorkloadType: pcs.Spec.WorkloadType,
		},
	}
}

// desiredClique is the PodClique of an expected clique. group is the object of its
// scaling group, nil for a standalone clique. A member is controlled by its group and
// owned by the set as well, so that the set's other controllers find it by the set's UID.
func desiredClique(pcs *grovev1alpha1.PodCliqueSet, expected gang.ExpectedClique, group *grovev1alpha1.PodCliqueScalingGroup) *grovev1alpha1.PodClique {
	own := labels.ForReplica(expected.Name, pcs.Name, labels.ComponentPodClique, expected.Replica)
	owners := []metav1.OwnerReference{ownedBySet(pcs)}
	if group != nil {
		own[labels.Component] = labels.ComponentScalingGroupPodClique
		own[labels.ScalingGroup] = expected.GroupName
		own[labels.ScalingGroupReplicaIndex] = labels.Index(expected.Copy)
		set := ownedBySet(pcs)
		set.Controller = nil
		owners = []metav1.OwnerReference{*metav1.NewControllerRef(group, grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueScalingGroup")), set}
	}
	own[labels.PodGang] = expected.Gang
	if expected.Gang != expected.BaseGang {
		own[labels.BasePodGang] = expected.BaseGang
	}
	own[labels.PodTemplateHash] = gang.TemplateHash(pcs, expected.Template.Name)
	cliqueLabels := map[string]string{}
	maps.Copy(cliqueLabels, expected.Template.Labels)
	maps.Copy(cliqueLabels, own)
	annotations := map[string]string{}
	maps.Copy(annotations, expected.Template.Annotations)
	annotations[labels.GenerationHash] = ptr.Deref(pcs.Status.CurrentGenerationHash, "")

	spec := *expected.Template.Spec.DeepCopy()
	spec.WorkloadType = pcs.Spec.WorkloadType
	spec.Attempt = desiredAttempt(pcs, expected, group)
	return &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{
			Name:            expected.Name,
			Namespace:       pcs.Namespace,
			Labels:          cliqueLabels,
			Annotations:     annotations,
			OwnerReferences: owners,
		},
		Spec: spec,
	}
}

// updatedClique is a PodClique that exists as it should be, nil when it is so already. It is
// raised to its attempt, has the bounds that the template gives its autoscaler, and takes the
// rest of the template as it is now when that is due. Its size is its own: an autoscaler's, or
// somebody's who has scaled it.
func updatedClique(pcs *grovev1alpha1.PodCliqueSet, expected gang.ExpectedClique, group *grovev1alpha1.PodCliqueScalingGroup, clique *grovev1alpha1.PodClique) *grovev1alpha1.PodClique {
	attempt := max(desiredAttempt(pcs, expected, group), clique.Spec.Attempt)
	raised := attempt > clique.Spec.Attempt
	// Whatever makes all its pods anew in the middle of an update makes them from the new template.
	takes := gang.TakesTemplate(pcs, expected, group) ||
		(raised && gang.IsReplicaInTurn(pcs, expected.Replica))
	takes = takes && gang.PodTemplateHash(clique) != gang.TemplateHash(pcs, expected.Template.Name)
	config := expected.Template.Spec.AutoScalingConfig
	if !raised && !takes && apiequality.Semantic.DeepEqual(clique.Spec.AutoScalingConfig, config) {
		return nil
	}
	out := clique.DeepCopy()
	if takes {
		want := desiredClique(pcs, expected, group)
		out.Labels, out.Annotations = want.Labels, want.Annotations
		out.Spec.PodSpec = want.Spec.PodSpec
	}
	out.Spec.Attempt, out.Spec.AutoScalingConfig = attempt, config.DeepCopy()
	return out
}

// desiredAttempt is the sum of the attempts of the replica and of the copy (D3).
func desiredAttempt(pcs *grovev1alpha1.PodCliqueSet, expected gang.ExpectedClique, group *grovev1alpha1.PodCliqueScalingGroup) int32 {
	return gang.ReplicaAttempt(pcs, expected.Replica) + gang.CopyAttempt(group, expected.Copy)
}

// desiredGang is a PodGang as it should be. It references the pods below each clique's
// minimum: their names follow from the cliques' UIDs. A member that is held keeps what the
// gang that exists in the same attempt says of it; complete is false when there is none. Its
// priority class changes with an attempt whose cliques all have taken the template: pods of one
// gang have the same.
// Its placement follows the topology, but with schedulers that do not change their mind.
func desiredGang(pcs *grovev1alpha1.PodCliqueSet, replica int32, plan *gangPlan, existing *schedulerv1alpha1.PodGang, topology gang.Topology) (out *schedulerv1alpha1.PodGang, complete bool) {
	gangLabels := labels.ForReplica(plan.name, pcs.Name, labels.ComponentPodGang, replica)
	gangLabels[labels.RestartAttempt] = labels.Index(plan.attempt)
	if scheduler := schedulerOf(plan); len(validation.IsValidLabelValue(scheduler)) == 0 {
		gangLabels[labels.SchedulerName] = scheduler
	}
	if plan.name != plan.base {
		gangLabels[labels.BasePodGang] = plan.base
	}
	out = &schedulerv1alpha1.PodGang{
		ObjectMeta: metav1.ObjectMeta{
			Name:            plan.name,
			Namespace:       pcs.Namespace,
			Labels:          gangLabels,
			OwnerReferences: []metav1.OwnerReference{ownedBySet(pcs)},
		},
		Spec: schedulerv1alpha1.PodGangSpec{PriorityClassName: priorityOf(pcs, plan)},
	}
	if existing != nil && (gang.GangAttempt(existing) >= plan.attempt || !haveTakenTemplate(pcs, plan)) {
		out.Spec.PriorityClassName = existing.Spec.PriorityClassName
	}
	carry(out, pcs)
	for _, member := range plan.members {
		group := podsOfGang(member.clique)
		if member.held {
			before := groupIn(existing, member.clique.Name)
			if before == nil || gang.GangAttempt(existing) != plan.attempt {
				return nil, false
			}
			group = *before
		}
		out.Spec.PodGroups = append(out.Spec.PodGroups, group)
	}
	placement := gang.PlaceGang(pcs, topology, expectedOf(plan))
	if existing != nil && gang.GangAttempt(existing) >= plan.attempt && topology.Support.Fixed {
		placement = gang.PlacementOf(existing, out.Spec.PodGroups)
	}
	placement.Apply(&out.Spec)
	nameTopology(out, placement.Name)
	return out, true
}

// haveTakenTemplate says that all cliques of a gang make their pods from the template as it is
// now. Whose turn it is does not: a stage that opens late has its gang when the turn is over.
func haveTakenTemplate(pcs *grovev1alpha1.PodCliqueSet, plan *gangPlan) bool {
	for _, member := range plan.members {
		if gang.PodTemplateHash(member.clique) != gang.TemplateHash(pcs, member.expected.Template.Name) {
			return false
		}
	}
	return true
}

func expectedOf(plan *gangPlan) []gang.ExpectedClique {
	out := make([]gang.ExpectedClique, 0, len(plan.members))
	for _, member := range plan.members {
		out = append(out, member.expected)
	}
	return out
}

// nameTopology says on a gang how its scheduler knows the topology; nothing when the name is
// empty.
func nameTopology(podGang *schedulerv1alpha1.PodGang, name string) {
	if name == "" {
		delete(podGang.Annotations, labels.TopologyName)
		return
	}
	metav1.SetMetaDataAnnotation(&podGang.ObjectMeta, labels.TopologyName, name)
}

// schedulerOf is the scheduler of a gang: all its pods have the same.
func schedulerOf(plan *gangPlan) string {
	for _, member := range plan.members {
		if name := member.clique.Spec.PodSpec.SchedulerName; name != "" {
			return name
		}
	}
	return corev1.DefaultSchedulerName
}

// priorityOf is the class of a new gang. A group of another class than its pods is refused by
// kube-scheduler (D23).
func priorityOf(pcs *grovev1alpha1.PodCliqueSet, plan *gangPlan) string {
	specs := make([]*grovev1alpha1.PodCliqueSpec, 0, len(plan.members))
	for _, member := range plan.members {
		specs = append(specs, &member.clique.Spec)
	}
	return gang.PriorityClass(pcs, specs)
}

// podsOfGang are the pods of a clique that are scheduled with its gang.
func podsOfGang(clique *grovev1alpha1.PodClique) schedulerv1alpha1.PodGangPodGroup {
	group := schedulerv1alpha1.PodGangPodGroup{
		Name:        clique.Name,
		MinReplicas: min(ptr.Deref(clique.Spec.MinAvailable, clique.Spec.Replicas), clique.Spec.Replicas),
	}
	for index := range group.MinReplicas {
		group.PodReferences = append(group.PodReferences, schedulerv1alpha1.NamespacedName{
			Namespace: clique.Namespace,
			Name:      naming.Pod(clique.Name, clique.UID, index, clique.Spec.Attempt),
		})
	}
	return group
}

// groupIn is what a gang, if there is one, says of a clique.
func groupIn(podGang *schedulerv1alpha1.PodGang, clique string) *schedulerv1alpha1.PodGangPodGroup {
	if podGang == nil {
		return nil
	}
	for i := range podGang.Spec.PodGroups {
		if podGang.Spec.PodGroups[i].Name == clique {
			return &podGang.Spec.PodGroups[i]
		}
	}
	return nil
}
