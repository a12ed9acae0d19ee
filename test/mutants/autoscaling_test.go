package mutants

// autoscalingMutants are mistakes about what scales: each of them lets a size be lost, writes
// for ever, or has an autoscaler look for other pods than those it scales.
func autoscalingMutants() map[string]mutant {
	return map[string]mutant{
		"autoscaling: a clique goes back to the size of the template": {
			file: ctrl + "replica/desired.go", old: "	out.Spec.Attempt, out.Spec.AutoScalingConfig = attempt, config.DeepCopy()\n", new: "	out.Spec.Attempt, out.Spec.AutoScalingConfig, out.Spec.Replicas = attempt, config.DeepCopy(), expected.Template.Spec.Replicas\n",
		},
		"autoscaling: a clique keeps the bounds that it was made with": {
			file: ctrl + "replica/desired.go", old: "	out.Spec.Attempt, out.Spec.AutoScalingConfig = attempt, config.DeepCopy()\n", new: "	out.Spec.Attempt = attempt\n",
		},
		"autoscaling: what goes is scaled until it has gone": {
			file: ctrl + "replica/plan.go", old: "	for _, name := range slices.Sorted(maps.Keys(have.autoscalers)) {\n		p.removeOne(have.autoscalers[name])\n	}\n", new: "",
		},
		"autoscaling: what is not to be scaled any more is scaled on": {
			file: ctrl + "replica/autoscaler.go", old: "		if !wanted[name] {\n", new: "		if !wanted[name] && false {\n",
		},
		"autoscaling: an autoscaler is written in each pass": {
			file: ctrl + "replica/autoscaler.go", old: "apiequality.Semantic.DeepEqual(scaler.Spec, want.Spec) && hasLabels", new: "apiequality.Semantic.DeepEqual(scaler, want) && hasLabels",
		},
		"autoscaling: what the server fills in is taken for a change": {
			file: ctrl + "replica/autoscaler.go", old: "	if rules.Policies == nil {\n		rules.Policies = policies\n	}\n", new: "	_ = policies\n",
		},
		"autoscaling: what people change of an autoscaler stays": {
			file: ctrl + "replica/autoscaler.go", old: "	updated.Spec = want.Spec\n", new: "",
		},
		"autoscaling: each look of the autoscaler brings a pass": {
			file: ctrl + "replica/setup.go", old: "return !apiequality.Semantic.DeepEqual(e.ObjectOld.Spec, e.ObjectNew.Spec) ||", new: "return e.ObjectOld.ResourceVersion != e.ObjectNew.ResourceVersion ||",
		},
		"autoscaling: an autoscaler without our labels is made in vain for ever": {
			file: ctrl + "replica/controller.go", old: "		return r.showAgain(ctx, obj, want)\n", new: "		_ = want\n		return nil\n",
		},
		"autoscaling: the pods of a group are those of its first copy": {
			file: "pkg/labels/selectors.go", old: "ScalingGroupFirstPod: \"true\"}", new: "ScalingGroupFirstPod: \"true\", ScalingGroupReplicaIndex: \"0\"}",
		},
		"autoscaling: the pods of a clique are those of its set": {
			file: gang + "clique.go", old: "labels.PodsOfClique(s.Clique.Name)", new: "labels.PodsOfSet(s.Clique.Name)",
		},
		"autoscaling: every pod of a copy counts as a copy": {
			file: "pkg/labels/selectors.go", old: "ScalingGroup: name, ScalingGroupFirstPod: \"true\"", new: "ScalingGroup: name",
		},
		"autoscaling: every clique of a copy stands for it": {
			file: "pkg/podspec/podspec.go", old: "c.GroupPods, c.GroupPods == 0", new: "c.GroupPods, true",
		},
	}
}
