package main

import (
	"context"
	"log"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"
)

const (
	toBeDeleted = "ToBeDeletedByClusterAutoscaler"
	threshold   = 0.5
)

// room is what a node has left.
type room struct {
	node *corev1.Node
	free map[corev1.ResourceName]int64
}

func roomOf(node *corev1.Node, pods []*corev1.Pod) *room {
	free := map[corev1.ResourceName]int64{}
	for name, amount := range node.Status.Allocatable {
		free[name] = amount.MilliValue()
	}
	found := &room{node: node, free: free}
	for _, pod := range pods {
		if pod.Spec.NodeName == node.Name && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			found.take(pod)
		}
	}
	return found
}

func (r *room) fits(pod *corev1.Pod) bool {
	if !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(r.node.Labels)) {
		return false
	}
	for name, amount := range requests(pod) {
		if r.free[name] < amount {
			return false
		}
	}
	return true
}

func (r *room) take(pod *corev1.Pod) {
	for name, amount := range requests(pod) {
		r.free[name] -= amount
	}
}

func requests(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	total := map[corev1.ResourceName]int64{corev1.ResourcePods: 1000}
	for _, container := range pod.Spec.Containers {
		for name, amount := range container.Resources.Requests {
			total[name] += amount.MilliValue()
		}
	}
	return total
}

func unschedulable(pods []*corev1.Pod) []*corev1.Pod {
	var found []*corev1.Pod
	for _, pod := range pods {
		for _, condition := range pod.Status.Conditions {
			waits := condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse
			if waits && condition.Reason == corev1.PodReasonUnschedulable && pod.DeletionTimestamp == nil && pod.Spec.NodeName == "" {
				found = append(found, pod)
			}
		}
	}
	return found
}

// left says which pods find no place on these nodes, filling them up.
func left(pods []*corev1.Pod, rooms []*room) []*corev1.Pod {
	var found []*corev1.Pod
next:
	for _, pod := range pods {
		for _, each := range rooms {
			if each.fits(pod) {
				each.take(pod)
				continue next
			}
		}
		found = append(found, pod)
	}
	return found
}

// rooms are those of nodes that take pods.
func (s *State) rooms() []*room {
	var found []*room
	for _, node := range s.nodes {
		if ready(node) && !node.Spec.Unschedulable && !tainted(node) {
			found = append(found, roomOf(node, s.pods))
		}
	}
	return found
}

func (l *Loop) scaleDown(ctx context.Context, s *State) error {
	candidates := map[string]time.Time{}
	spare := map[string]int{}
	for _, group := range s.groups {
		spare[group.id] = s.target[group.id] - group.min
	}
	rooms := s.rooms()
	var going []*corev1.Node
	for _, node := range s.nodes {
		group := s.group[node.Name]
		if spare[group] <= 0 || tainted(node) || !ready(node) || !l.removable(s, node, rooms) {
			continue
		}
		candidates[node.Name] = earlier(l.unneeded[node.Name], time.Now())
		if time.Since(candidates[node.Name]) >= l.settings.unneeded && time.Since(l.lastScaleUp) >= l.settings.afterAdd {
			going = append(going, node)
			spare[group]--
			rooms = without(rooms, node.Name)
		}
	}
	l.unneeded = candidates
	for _, node := range going {
		if err := l.taint(ctx, node.Name, true); err != nil {
			log.Printf("taint %s: %v", node.Name, err)
			continue
		}
		go func() { // the next loop does not wait
			l.deletions <- struct{}{}
			defer func() { <-l.deletions }()
			l.remove(ctx, s.group[node.Name], node)
		}()
	}
	return nil
}

// removable: little used, and its pods find another place, which is then theirs.
func (l *Loop) removable(s *State, node *corev1.Node, rooms []*room) bool {
	var moving []*corev1.Pod
	used := map[corev1.ResourceName]int64{}
	for _, pod := range s.pods {
		if pod.Spec.NodeName == node.Name && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			moving = append(moving, pod)
			for name, amount := range requests(pod) {
				used[name] += amount
			}
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		allocatable := node.Status.Allocatable[name]
		if total := allocatable.MilliValue(); total > 0 && float64(used[name])/float64(total) > threshold {
			return false
		}
	}
	return len(left(moving, without(rooms, node.Name))) == 0
}

func without(rooms []*room, name string) []*room {
	var found []*room
	for _, each := range rooms {
		if each.node.Name != name {
			found = append(found, each)
		}
	}
	return found
}

// remove drains a node and asks for its deletion, alone, as the Cluster Autoscaler does by default.
func (l *Loop) remove(ctx context.Context, group string, node *corev1.Node) {
	if l.drained(ctx, node.Name) && l.delete(ctx, group, node) {
		log.Printf("node %s is going", node.Name)
		return
	}
	if err := l.taint(ctx, node.Name, false); err != nil {
		log.Printf("untaint %s: %v", node.Name, err)
	}
}

func (l *Loop) drained(ctx context.Context, name string) bool {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		pods, err := l.cluster.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
		if err == nil && len(pods.Items) == 0 {
			return true
		}
		for i := range pods.Items {
			meta := metav1.ObjectMeta{Name: pods.Items[i].Name, Namespace: pods.Items[i].Namespace}
			eviction := &policyv1.Eviction{ObjectMeta: meta}
			err := l.cluster.PolicyV1().Evictions(meta.Namespace).Evict(ctx, eviction)
			if err != nil && !apierrors.IsNotFound(err) {
				log.Printf("evict %s: %v", meta.Name, err)
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	return false
}

func (l *Loop) taint(ctx context.Context, name string, on bool) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := l.cluster.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var kept []corev1.Taint
		for _, taint := range node.Spec.Taints {
			if taint.Key != toBeDeleted {
				kept = append(kept, taint)
			}
		}
		if on {
			value := strconv.FormatInt(time.Now().Unix(), 10)
			kept = append(kept, corev1.Taint{Key: toBeDeleted, Value: value, Effect: corev1.TaintEffectNoSchedule})
		}
		node.Spec.Taints, node.Spec.Unschedulable = kept, on
		_, err = l.cluster.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// untaint is done at the start: what an earlier process began is forgotten.
func (l *Loop) untaint(ctx context.Context) {
	nodes, err := l.cluster.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range nodes.Items {
		if tainted(&nodes.Items[i]) {
			if err := l.taint(ctx, nodes.Items[i].Name, false); err != nil {
				log.Printf("untaint %s: %v", nodes.Items[i].Name, err)
			}
		}
	}
}

func tainted(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == toBeDeleted {
			return true
		}
	}
	return false
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
