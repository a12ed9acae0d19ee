package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// validateResources checks the templates of resource claims, and who shares the claims.
func validateResources(template *grove.PodCliqueSetTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	templates := sets.New[string]()
	for i := range template.ResourceClaimTemplates {
		claim, claimPath := &template.ResourceClaimTemplates[i], path.Child("resourceClaimTemplates").Index(i)
		errs = append(errs, fields.UniqueName(claim.Name, templates, claimPath.Child("name"))...)
		metaPath := claimPath.Child("templateSpec", "metadata")
		errs = append(errs, unversionedvalidation.ValidateLabels(claim.TemplateSpec.Labels, metaPath.Child("labels"))...)
		errs = append(errs, apivalidation.ValidateAnnotations(claim.TemplateSpec.Annotations, metaPath.Child("annotations"))...)
		if len(claim.TemplateSpec.Spec.Devices.Requests) == 0 {
			errs = append(errs, field.Required(claimPath.Child("templateSpec", "spec", "devices", "requests"), "a claim needs at least one device request"))
		}
	}
	cliques, groups := cliqueNames(template), sets.New[string]()
	for i := range template.PodCliqueScalingGroups {
		groups.Insert(template.PodCliqueScalingGroups[i].Name)
	}

	names := sets.New[string]()
	for i := range template.ResourceSharing {
		sharing, sharingPath := &template.ResourceSharing[i], path.Child("resourceSharing").Index(i)
		errs = append(errs, validateSharing(&sharing.ResourceSharingSpec, templates, names, sharingPath)...)
		if filter, filterPath := sharing.Filter, sharingPath.Child("filter"); filter != nil {
			errs = append(errs, validateChildren(filter.ChildCliqueNames, cliques, filterPath.Child("childCliqueNames"))...)
			errs = append(errs, validateChildren(filter.ChildScalingGroupNames, groups, filterPath.Child("childScalingGroupNames"))...)
			if len(filter.ChildCliqueNames)+len(filter.ChildScalingGroupNames) == 0 {
				errs = append(errs, field.Required(filterPath, "names no clique and no scaling group; leave it out to share with all"))
			}
		}
	}
	for i := range template.Cliques {
		names := sets.New[string]()
		for j := range template.Cliques[i].ResourceSharing {
			errs = append(errs, validateSharing(&template.Cliques[i].ResourceSharing[j], templates, names, path.Child("cliques").Index(i).Child("resourceSharing").Index(j))...)
		}
	}
	for i := range template.PodCliqueScalingGroups {
		group, names := &template.PodCliqueScalingGroups[i], sets.New[string]()
		for j := range group.ResourceSharing {
			sharing, sharingPath := &group.ResourceSharing[j], path.Child("podCliqueScalingGroups").Index(i).Child("resourceSharing").Index(j)
			errs = append(errs, validateSharing(&sharing.ResourceSharingSpec, templates, names, sharingPath)...)
			if filter := sharing.Filter; filter != nil {
				errs = append(errs, validateChildren(filter.ChildCliqueNames, sets.New(group.CliqueNames...), sharingPath.Child("filter", "childCliqueNames"))...)
				if len(filter.ChildCliqueNames) == 0 {
					errs = append(errs, field.Required(sharingPath.Child("filter"), "names no clique; leave it out to share with all of the group"))
				}
			}
		}
	}
	return errs
}

// validateSharing checks a reference to a template, which is one of the set's own or a
// ResourceClaimTemplate object.
func validateSharing(sharing *grove.ResourceSharingSpec, templates, seen sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if sharing.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "the name of a template of resource claims"))
	}
	errs = append(errs, fields.Subdomain(sharing.Name, path.Child("name"))...)
	if sharing.Name != "" && seen.Has(sharing.Name) {
		errs = append(errs, field.Duplicate(path.Child("name"), sharing.Name))
	}
	seen.Insert(sharing.Name)
	switch {
	case sharing.Namespace == "":
	case templates.Has(sharing.Name):
		errs = append(errs, field.Forbidden(path.Child("namespace"), "must be empty: the template is one of the set's resourceClaimTemplates"))
	default:
		for _, msg := range apivalidation.ValidateNamespaceName(sharing.Namespace, false) {
			errs = append(errs, field.Invalid(path.Child("namespace"), sharing.Namespace, msg))
		}
	}
	return append(errs, fields.Enum(sharing.Scope, path.Child("scope"), grove.ResourceSharingScopeAllReplicas, grove.ResourceSharingScopePerReplica)...)
}

// validateChildren checks names of things that are shared with.
func validateChildren(names []string, known sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, name := range names {
		switch {
		case !known.Has(name):
			errs = append(errs, field.NotFound(path.Index(i), name))
		case seen.Has(name):
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
		seen.Insert(name)
	}
	return errs
}
