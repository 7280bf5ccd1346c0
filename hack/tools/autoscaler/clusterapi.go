package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const capacity = "capacity.cluster-autoscaler.kubernetes.io/"

// capiCloud asks as the Cluster Autoscaler's provider clusterapi does, with CAPI_GROUP and CAPI_VERSION.
type capiCloud struct {
	unasked
	client         dynamic.Interface
	group, version string
	namespace      string
	machines       []unstructured.Unstructured
	scalable       map[string]*unstructured.Unstructured
	lock           sync.Mutex // deletions come in parallel, and each writes a size that it has read
}

func newCapiCloud(client dynamic.Interface, discovery string) *capiCloud {
	cloud := &capiCloud{client: client, group: "cluster.x-k8s.io", version: "v1beta2"}
	if value := os.Getenv("CAPI_GROUP"); value != "" {
		cloud.group = value
	}
	if value := os.Getenv("CAPI_VERSION"); value != "" {
		cloud.version = value
	}
	for _, part := range strings.Split(strings.TrimPrefix(discovery, "clusterapi:"), ",") {
		if key, value, found := strings.Cut(part, "="); found && key == "namespace" {
			cloud.namespace = value
		}
	}
	return cloud
}

func (c *capiCloud) resource(plural string) dynamic.NamespaceableResourceInterface {
	return c.client.Resource(schema.GroupVersionResource{Group: c.group, Version: c.version, Resource: plural})
}

// Refresh reads what the provider's informers would have.
func (c *capiCloud) Refresh(ctx context.Context) error {
	scalable := map[string]*unstructured.Unstructured{}
	for kind, plural := range map[string]string{"MachineDeployment": "machinedeployments", "MachineSet": "machinesets"} {
		found, err := c.resource(plural).Namespace(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range found.Items {
			item := &found.Items[i]
			scalable[kind+"/"+item.GetNamespace()+"/"+item.GetName()] = item
		}
	}
	machines, err := c.resource("machines").Namespace(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	c.scalable, c.machines = scalable, machines.Items
	return nil
}

func (c *capiCloud) NodeGroups(ctx context.Context) ([]Group, error) {
	var groups []Group
	for id, item := range c.scalable {
		if ownerOf(item, "MachineDeployment") != "" {
			continue
		}
		if _, paused := item.GetAnnotations()["cluster.x-k8s.io/paused"]; paused {
			continue
		}
		smallest, largest, err := c.bounds(item)
		if err != nil {
			return nil, err // one malformed object loses all groups
		}
		if largest == 0 {
			continue
		}
		if _, err := c.scale(ctx, id); err != nil { // its debug text is made eagerly
			return nil, err
		}
		groups = append(groups, Group{id, smallest, largest})
	}
	return groups, nil
}

func (c *capiCloud) bounds(item *unstructured.Unstructured) (int, int, error) {
	var found [2]int
	for i, name := range []string{"min", "max"} {
		text, ok := item.GetAnnotations()[c.group+"/cluster-api-autoscaler-node-group-"+name+"-size"]
		if !ok {
			continue
		}
		value, err := strconv.Atoi(text)
		if err != nil {
			return 0, 0, err
		}
		found[i] = value
	}
	return found[0], found[1], nil
}

func (c *capiCloud) NodeGroupForNode(_ context.Context, node *corev1.Node) (string, error) {
	machine := c.machineOf(node)
	if machine == nil {
		return "", nil
	}
	return c.groupOf(machine), nil
}

func (c *capiCloud) machineOf(node *corev1.Node) *unstructured.Unstructured {
	for i := range c.machines {
		machine := &c.machines[i]
		id, _, _ := unstructured.NestedString(machine.Object, "spec", "providerID")
		key := machine.GetNamespace() + "/" + machine.GetName()
		pending := node.Spec.ProviderID == synthetic("pending", machine) || node.Spec.ProviderID == synthetic("failed", machine)
		if (id != "" && last(id) == last(node.Spec.ProviderID)) || node.Annotations[c.group+"/machine"] == key || pending {
			return machine
		}
	}
	return nil
}

func (c *capiCloud) groupOf(machine *unstructured.Unstructured) string {
	set := ownerOf(machine, "MachineSet")
	id := "MachineSet/" + machine.GetNamespace() + "/" + set
	item := c.scalable[id]
	if set == "" || item == nil {
		return ""
	}
	if deployment := ownerOf(item, "MachineDeployment"); deployment != "" {
		return "MachineDeployment/" + machine.GetNamespace() + "/" + deployment
	}
	return id
}

func (c *capiCloud) TargetSize(_ context.Context, group string) (int, error) {
	item := c.scalable[group]
	if item == nil {
		return 0, fmt.Errorf("no group %s", group)
	}
	replicas, found, err := unstructured.NestedInt64(item.Object, "spec", "replicas")
	if err == nil && !found {
		err = errors.New("spec.replicas is not set")
	}
	return int(replicas), err
}

func (c *capiCloud) Nodes(_ context.Context, group string) ([]Instance, error) {
	selector, _, err := unstructured.NestedStringMap(c.scalable[group].Object, "spec", "selector", "matchLabels")
	if err != nil {
		return nil, err
	}
	var found []Instance
	for i := range c.machines {
		machine := &c.machines[i]
		if labels.SelectorFromSet(selector).Matches(labels.Set(machine.GetLabels())) && c.groupOf(machine) == group {
			found = append(found, instanceOf(machine))
		}
	}
	return found, nil
}

func instanceOf(machine *unstructured.Unstructured) Instance {
	failure, _, _ := unstructured.NestedString(machine.Object, "status", "failureMessage")
	phase, _, _ := unstructured.NestedString(machine.Object, "status", "phase")
	_, joined, _ := unstructured.NestedMap(machine.Object, "status", "nodeRef")
	id, _, _ := unstructured.NestedString(machine.Object, "spec", "providerID")
	switch {
	case failure != "" && phase == "Failed" && !joined:
		return Instance{synthetic("failed", machine), creating, "ProvisioningFailed"}
	case machine.GetDeletionTimestamp() != nil:
		return Instance{synthetic("deleting", machine), deleting, ""}
	case !joined:
		return Instance{synthetic("pending", machine), creating, ""}
	}
	return Instance{id, running, ""}
}

// Template is made of the annotations; a kube-proxy pod and labels of real nodes, which the provider adds, are left out.
func (c *capiCloud) Template(_ context.Context, group string) (*corev1.Node, error) {
	annotations := c.scalable[group].GetAnnotations()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	node.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse("110")}
	for name, key := range map[corev1.ResourceName]string{"cpu": "cpu", "memory": "memory", "pods": "maxPods"} {
		text, ok := annotations[capacity+key]
		if !ok && key != "maxPods" {
			return nil, fmt.Errorf("%s has no annotation %s%s", group, capacity, key)
		}
		if ok {
			amount, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, err
			}
			node.Status.Allocatable[name] = amount
		}
	}
	for _, pair := range strings.Split(annotations[capacity+"labels"], ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			node.Labels[key] = value
		}
	}
	return node, nil
}

func (c *capiCloud) IncreaseSize(ctx context.Context, group string, delta int) error {
	size, err := c.scale(ctx, group)
	if err != nil {
		return err
	}
	_, largest, err := c.bounds(c.scalable[group])
	if err != nil || size+delta > largest {
		return errors.Join(err, fmt.Errorf("size increase too large - desired:%d max:%d", size+delta, largest))
	}
	return c.setScale(ctx, group, size+delta)
}

func (c *capiCloud) DecreaseTargetSize(ctx context.Context, group string, delta int) error {
	size, err := c.scale(ctx, group)
	if err != nil {
		return err
	}
	instances, err := c.Nodes(ctx, group)
	if err != nil {
		return err
	}
	existing := 0
	for _, each := range instances {
		if each.state == running {
			existing++
		}
	}
	if size+delta < existing {
		return fmt.Errorf("attempt to delete existing nodes targetSize:%d delta:%d existingNodes: %d", size, delta, existing)
	}
	return c.setScale(ctx, group, size+delta)
}

func (c *capiCloud) DeleteNodes(ctx context.Context, group string, nodes []*corev1.Node) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	size, err := c.scale(ctx, group)
	if err != nil {
		return err
	}
	if smallest, _, _ := c.bounds(c.scalable[group]); size-len(nodes) < smallest {
		return fmt.Errorf("min size reached, nodes will not be deleted")
	}
	for _, node := range nodes {
		known := c.machineOf(node)
		if known == nil || c.groupOf(known) != group {
			return fmt.Errorf("%s is not in %s", node.Name, group)
		}
		machines := c.resource("machines").Namespace(known.GetNamespace())
		machine, err := machines.Get(ctx, known.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if machine.GetDeletionTimestamp() != nil {
			continue
		}
		annotations := machine.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[c.group+"/delete-machine"] = time.Now().String()
		machine.SetAnnotations(annotations)
		if _, err := machines.Update(ctx, machine, metav1.UpdateOptions{}); err != nil {
			return err
		}
		size--
		if err := c.setScale(ctx, group, size); err != nil {
			return err
		}
	}
	return nil
}

func (c *capiCloud) scale(ctx context.Context, group string) (int, error) {
	plural, namespace, name := parts(group)
	found, err := c.resource(plural).Namespace(namespace).Get(ctx, name, metav1.GetOptions{}, "scale")
	if err != nil {
		return 0, err
	}
	replicas, _, err := unstructured.NestedInt64(found.Object, "spec", "replicas")
	return int(replicas), err
}

func (c *capiCloud) setScale(ctx context.Context, group string, size int) error {
	plural, namespace, name := parts(group)
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": size}})
	if err != nil {
		return err
	}
	_, err = c.resource(plural).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	return err
}

func parts(group string) (plural, namespace, name string) {
	words := strings.SplitN(group, "/", 3)
	return strings.ToLower(words[0]) + "s", words[1], words[2]
}

func ownerOf(item *unstructured.Unstructured, kind string) string {
	for _, reference := range item.GetOwnerReferences() {
		if reference.Kind == kind {
			return reference.Name
		}
	}
	return ""
}

func synthetic(state string, machine *unstructured.Unstructured) string {
	return state + "-machine-" + machine.GetNamespace() + "_" + machine.GetName()
}

func last(id string) string { return id[strings.LastIndex(id, "/")+1:] }
