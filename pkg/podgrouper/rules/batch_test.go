package rules_test

import "testing"

func TestBatch(t *testing.T) {
	job := func(spec, annotations string) string {
		return `
apiVersion: batch/v1
kind: Job
metadata: {name: prep, annotations: ` + annotations + `}
spec: ` + spec + `
---
{apiVersion: v1, kind: Pod, metadata: {name: prep-x}, under: Job/prep, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: prep-y}, under: Job/prep, spec: {}}
`
	}
	runCases(t, map[string]groupCase{
		"one pod of a Job is enough": {
			objects: job("{parallelism: 4, completions: 8}", "{}"),
			want:    map[string]string{"prep-x": "pg-prep of Job/prep, 1; train"},
		},
		"KAI's annotation": {
			objects: job("{parallelism: 4, completions: 8}", `{kai.scheduler/batch-min-member: "4"}`),
			want:    map[string]string{"prep-x": "pg-prep of Job/prep, 4; train"},
		},
		"KAI's annotation, wrong": {
			objects: job("{parallelism: 4}", `{kai.scheduler/batch-min-member: all}`),
			want:    map[string]string{"prep-x": "pg-prep of Job/prep, 1; train; InvalidOverride"},
		},
		"KAI's annotation, too high": {
			objects: job("{parallelism: 4, completions: 3}", `{kai.scheduler/batch-min-member: "4"}`),
			want:    map[string]string{"prep-x": "pg-prep of Job/prep, 3; train; MinMemberTooHigh"},
		},
		"ours counts more than KAI's": {
			objects: job("{parallelism: 4}", `{kai.scheduler/batch-min-member: "4", scheduler.grove.io/min-member: "2"}`),
			want:    map[string]string{"prep-x": "pg-prep of Job/prep, 2; train"},
		},
		"no more than are left to complete": {
			objects: job("{parallelism: 4, completions: 2}", `{scheduler.grove.io/min-member: "4"}`),
			want:    map[string]string{"prep-x": "pg-prep of Job/prep, 2; train; MinMemberTooHigh"},
		},
	})
	sameGroup(t, job("{parallelism: 2}", "{}"), []string{"prep-x", "prep-y"})
}

// Each run of a CronJob is a gang of its own; what the CronJob asks for counts for each.
func TestCronJob(t *testing.T) {
	const objects = `
{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly, labels: {priorityClassName: high}, annotations: {scheduler.grove.io/min-member: "2"}}, spec: {schedule: "0 0 * * *"}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: nightly-1}, under: CronJob/nightly, spec: {parallelism: 2}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: nightly-2}, under: CronJob/nightly, spec: {parallelism: 2}}
---
{apiVersion: v1, kind: Pod, metadata: {name: nightly-1-x}, under: Job/nightly-1, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: nightly-1-y}, under: Job/nightly-1, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: nightly-2-x}, under: Job/nightly-2, spec: {}}
`
	runCases(t, map[string]groupCase{"a CronJob": {objects: objects, want: map[string]string{
		"nightly-1-x": "pg-nightly-1 of Job/nightly-1, 2; high",
		"nightly-2-x": "pg-nightly-2 of Job/nightly-2, 2; high",
	}}})
	sameGroup(t, objects, []string{"nightly-1-x", "nightly-1-y"}, []string{"nightly-2-x"})
}
