package integration

import (
	"strings"
	"testing"
)

// chain has three cliques, and places for what a case says of the set, of the template, of
// its second clique and of that one's pods.
const chain = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: chain}
spec:
  replicas: 1
  workloadType: Training
  #set
  template:
    #template
    cliques:
      - name: a
        spec: {replicas: 1, podSpec: {containers: [{name: main, image: i}]}}
      - name: b
        spec:
          replicas: 1
          #clique
          podSpec:
            #pod
            containers: [{name: main, image: i}]
      - name: c
        spec: {replicas: 1, podSpec: {containers: [{name: main, image: i}]}}
`

// of fills in the places of chain.
func of(t *testing.T, places ...string) string {
	t.Helper()
	out := chain
	for i := 0; i+1 < len(places); i += 2 {
		out = replaceOnce(t, out, places[i], places[i+1])
	}
	return out
}

// The scenarios 17 and 21 to 29 of starting in order and together: sets that could never
// start, or not as they say, are refused.
func TestOrdersAndBarriersThatCannotBeAreRefused(t *testing.T) {
	ns := cluster.Namespace(t)
	const inOrder = "startupPolicy: {startupPolicyOrder: InOrder"
	rule := func(targets, status string) string {
		return inOrder + ", rules: [{targetCliques: " + targets + ", waitForCliquesStatus: " + status + "}]}"
	}
	tests := map[string]struct {
		manifest string
		want     []string
	}{
		"17 an order of stages and one of containers": {
			of(t, "#set", inOrder+"}", "#template", "cliqueStartupType: CliqueStartupTypeExplicit", "#clique", "startsAfter: [a]"),
			[]string{"spec.startupPolicy.startupPolicyOrder", "cliqueStartupType"},
		},
		"21 the last clique is waited for":         {of(t, "#set", rule("[a, b, c]", "Ready")), []string{"spec.startupPolicy.rules[0].targetCliques[2]", "last"}},
		"21 an unknown clique is waited for":       {of(t, "#set", rule("[a, b, d]", "Ready")), []string{"spec.startupPolicy.rules[0].targetCliques[2]", `Not found: "d"`}},
		"21 a clique is waited for twice":          {of(t, "#set", rule("[a, b, a]", "Ready")), []string{"spec.startupPolicy.rules[0].targetCliques[2]", `Duplicate value: "a"`}},
		"21 a clique is forgotten":                 {of(t, "#set", rule("[a]", "Ready")), []string{"spec.startupPolicy.rules", `"b"`}},
		"21 an unknown status":                     {of(t, "#set", rule("[a, b]", "Failed")), []string{"spec.startupPolicy.rules[0].waitForCliquesStatus", `"Ready", "Succeeded"`}},
		"24 the success of who never ends":         {of(t, "workloadType: Training", "workloadType: Inference", "#set", rule("[a, b]", "Succeeded")), []string{"spec.startupPolicy.rules[0].waitForCliquesStatus", "Ready"}},
		"25 a clique waits for itself":             {of(t, "#template", "cliqueStartupType: CliqueStartupTypeExplicit", "#clique", "startsAfter: [b]"), []string{"spec.template.cliques[1].spec.startsAfter[0]"}},
		"25 cliques wait for each other":           {strings.Replace(of(t, "#template", "cliqueStartupType: CliqueStartupTypeExplicit", "#clique", "startsAfter: [a]"), "spec: {replicas: 1,", "spec: {replicas: 1, startsAfter: [b],", 1), []string{"spec.template.cliques[1].spec.startsAfter[0]", "wait for each other"}},
		"26 a barrier across stages":               {of(t, "#set", inOrder+"}\n  groupSchedulingConfig: {targetCliques: [a, b]}"), []string{"spec.groupSchedulingConfig.targetCliques", "name one clique"}},
		"26 a barrier for all across stages":       {of(t, "#set", inOrder+"}\n  groupSchedulingConfig: {}"), []string{"spec.groupSchedulingConfig.targetCliques", "name one clique"}},
		"27 a barrier across startsAfter":          {of(t, "#template", "cliqueStartupType: CliqueStartupTypeExplicit", "#clique", "startsAfter: [a]", "#set", "groupSchedulingConfig: {targetCliques: [a, b]}"), []string{"spec.groupSchedulingConfig.targetCliques"}},
		"27 a barrier across an order":             {of(t, "#template", "cliqueStartupType: CliqueStartupTypeInOrder", "#set", "groupSchedulingConfig: {targetCliques: [a, c]}"), []string{"spec.groupSchedulingConfig.targetCliques"}},
		"28 the barrier's name for a container":    {of(t, "name: main, image: i}]\n      - name: c", "name: group-scheduling-init, image: i}]\n      - name: c"), []string{"spec.template.cliques[1].spec.podSpec.containers[0].name", "choose another"}},
		"28 and for an init container":             {of(t, "#pod", "initContainers: [{name: group-scheduling-init, image: i}]"), []string{"spec.template.cliques[1].spec.podSpec.initContainers[0].name", "choose another"}},
		"28 the order's name":                      {of(t, "#pod", "initContainers: [{name: grove-initc, image: i}]"), []string{"spec.template.cliques[1].spec.podSpec.initContainers[0].name", "choose another"}},
		"28 the volume's name":                     {of(t, "#pod", "volumes: [{name: group-scheduling, emptyDir: {}}]"), []string{"spec.template.cliques[1].spec.podSpec.volumes[0].name", "choose another"}},
		"29 an unknown clique at the barrier":      {of(t, "#set", "groupSchedulingConfig: {targetCliques: [d]}"), []string{"spec.groupSchedulingConfig.targetCliques[0]", `Not found: "d"`}},
		"29 a clique twice at the barrier":         {of(t, "#set", "groupSchedulingConfig: {targetCliques: [a, a]}"), []string{"spec.groupSchedulingConfig.targetCliques[1]", `Duplicate value: "a"`}},
		"29 no time at the barrier":                {of(t, "#set", "groupSchedulingConfig: {timeoutAfterSeconds: 0}"), []string{"spec.groupSchedulingConfig.timeoutAfterSeconds"}},
		"29 less than no time":                     {of(t, "#set", "groupSchedulingConfig: {timeoutAfterSeconds: -5}"), []string{"spec.groupSchedulingConfig.timeoutAfterSeconds"}},
		"an order for pods of Windows":             {of(t, "#template", "cliqueStartupType: CliqueStartupTypeInOrder", "#pod", "os: {name: windows}"), []string{"spec.template.cliques[1].spec.podSpec.os.name", "Linux"}},
		"a barrier that some of a clique can pass": {of(t, "#clique", "minAvailable: 1", "name: b\n        spec:\n          replicas: 1", "name: b\n        spec:\n          replicas: 2", "#set", "groupSchedulingConfig: {targetCliques: [b]}"), []string{"spec.template.cliques[1].spec.minAvailable"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			contains(t, ns.ApplyFails(tc.manifest), tc.want...)
		})
	}
	if out := ns.Kubectl("get", "pcs", "-o", "name"); out != "" {
		t.Errorf("a refused set was stored: %s", out)
	}
	// Scenario 26: one target has no order within.
	ns.Apply(of(t, "#set", inOrder+"}\n  groupSchedulingConfig: {targetCliques: [b]}"))
}

// Scenario 22: all cliques but the last are waited for until they are Ready. Scenario 23:
// the policy does not change, and what only restates it does not count as a change.
func TestTheOrderOfStagesIsDefaultedAndFixed(t *testing.T) {
	ns := cluster.Namespace(t)
	ordered := of(t, "#set", "startupPolicy: {startupPolicyOrder: InOrder}")
	ns.Apply(ordered)
	const rules = `[{"targetCliques":["a","b"],"waitForCliquesStatus":"Ready"}]`
	if got := ns.Kubectl("get", "pcs", "chain", "-o", "jsonpath={.spec.startupPolicy.rules}"); got != rules {
		t.Errorf("rules are defaulted to %s, want %s", got, rules)
	}
	for name, policy := range map[string]string{
		"another order":  "{startupPolicyOrder: AnyOrder}",
		"another status": "{startupPolicyOrder: InOrder, rules: [{targetCliques: [a, b], waitForCliquesStatus: Succeeded}]}",
	} {
		t.Run(name, func(t *testing.T) {
			contains(t, ns.ApplyFails(of(t, "#set", "startupPolicy: "+policy)), "spec.startupPolicy", "immutable")
		})
	}
	contains(t, ns.ApplyFails(of(t, "#set", "startupPolicy: {startupPolicyOrder: InOrder}\n  groupSchedulingConfig: {targetCliques: [b]}")), "spec.groupSchedulingConfig", "immutable")
	ns.Apply(ordered)
	ns.Apply(of(t, "#set", "startupPolicy: {startupPolicyOrder: InOrder, rules: "+rules+"}"))
	if got := ns.Kubectl("get", "pcs", "chain", "-o", "jsonpath={.metadata.generation}"); got != "1" {
		t.Errorf("applying the same again made generation %s", got)
	}
}
