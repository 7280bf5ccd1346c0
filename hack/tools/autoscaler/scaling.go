package main

import (
	"context"
	"fmt"
	"log"
	"math/rand"
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

// scaleUp asks one group, the best one, or those that are similar to it, as one loop does.
func (l *Loop) scaleUp(ctx context.Context, s *State, pending []*corev1.Pod) error {
	templates := map[string]*corev1.Node{}
	rooms := s.rooms()
	for _, group := range s.groups {
		template, err := l.cloud.Template(ctx, group.id)
		if err != nil {
			log.Printf("no template of %s: %v", group.id, err)
			continue
		}
		templates[group.id] = template
		for range l.upcoming(s, group.id) {
			rooms = append(rooms, roomOf(template, nil))
		}
	}
	waiting := left(pending, rooms)
	for { // a group that refuses is left for another one, in the same loop
		best := l.best(ctx, s, waiting, templates)
		if best.nodes == 0 {
			log.Printf("%d pods wait; no group helps", len(waiting))
			return nil
		}
		if l.grow(ctx, s, l.shares(s, best, templates)) {
			return nil
		}
	}
}

// option is a group and what it could do for pods that wait.
type option struct {
	group         string
	nodes, helped int
	price         float64
}

// best helps the most pods with the fewest nodes, or costs least for what it does.
func (l *Loop) best(ctx context.Context, s *State, waiting []*corev1.Pod, templates map[string]*corev1.Node) option {
	best := option{}
	for _, group := range s.groups {
		template := templates[group.id]
		if template == nil || !l.mayGrow(s, group) {
			continue
		}
		nodes, helped := estimate(waiting, template, group.max-s.target[group.id])
		found := option{group: group.id, nodes: nodes, helped: helped}
		if nodes == 0 {
			continue
		}
		if l.settings.expander == "price" {
			price, err := l.price(ctx, found, template, waiting)
			if err != nil {
				log.Printf("no price of %s: %v", group.id, err)
				continue // as the original: without a price it is no option
			}
			found.price = price
		}
		if best.nodes == 0 || found.betterThan(best) {
			best = found
		}
	}
	return best
}

func (o option) betterThan(other option) bool {
	if o.price != other.price {
		return o.price < other.price
	}
	return o.helped > other.helped || (o.helped == other.helped && o.nodes < other.nodes)
}

func (l *Loop) mayGrow(s *State, group Group) bool {
	return group.max > s.target[group.id] && !time.Now().Before(l.backoff[group.id])
}

// price of the nodes in relation to that of the pods, of a copy of the template under a name of its own.
func (l *Loop) price(ctx context.Context, o option, template *corev1.Node, pods []*corev1.Pod) (float64, error) {
	copied := template.DeepCopy()
	copied.Name = fmt.Sprintf("template-node-for-%s-%d", o.group, rand.Int63())
	node, err := l.cloud.NodePrice(ctx, copied)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, pod := range pods {
		price, err := l.cloud.PodPrice(ctx, pod)
		if err != nil {
			return 0, err
		}
		total += price
	}
	return (node*float64(o.nodes) + 0.001) / (total + 0.001), nil
}

// shares are by how many nodes which group grows: those that are similar to the best one are filled evenly.
func (l *Loop) shares(s *State, best option, templates map[string]*corev1.Node) map[string]int {
	if !l.settings.balance {
		return map[string]int{best.group: best.nodes}
	}
	chosen := l.example(s, best.group, templates)
	sizes, most := map[string]int{}, map[string]int{}
	for _, group := range s.groups {
		example := l.example(s, group.id, templates)
		if group.id == best.group || (example != nil && l.mayGrow(s, group) && similar(chosen, example)) {
			sizes[group.id], most[group.id] = s.target[group.id], group.max
		}
	}
	shares := map[string]int{}
	for range best.nodes {
		least := ""
		for id, size := range sizes {
			if size < most[id] && (least == "" || size < sizes[least] || (size == sizes[least] && id < least)) {
				least = id
			}
		}
		sizes[least]++
		shares[least]++
	}
	log.Printf("balanced among %d similar groups: %v", len(sizes), shares)
	return shares
}

// example of a group: a node of its own that has been there for a minute, else its template.
func (l *Loop) example(s *State, group string, templates map[string]*corev1.Node) *corev1.Node {
	for _, node := range s.nodes {
		settled := time.Since(node.CreationTimestamp.Time) > time.Minute
		if s.group[node.Name] == group && settled && ready(node) && !tainted(node) && !node.Spec.Unschedulable {
			return node
		}
	}
	return templates[group]
}

// grow asks for all of it; false if a group refused, which is left alone from now on.
func (l *Loop) grow(ctx context.Context, s *State, shares map[string]int) bool {
	grown := true
	for group, nodes := range shares {
		err := l.cloud.IncreaseSize(ctx, group, nodes)
		log.Printf("IncreaseSize %s %d: %v", group, nodes, err)
		if err != nil {
			l.backoff[group] = time.Now().Add(l.settings.backoff)
			grown = false
			continue
		}
		s.target[group] += nodes
		asked := l.scaleUps[group]
		l.scaleUps[group] = scaleUp{asked.increase + nodes, time.Now().Add(l.settings.provision)}
	}
	l.lastScaleUp = time.Now()
	return grown
}

func estimate(pods []*corev1.Pod, template *corev1.Node, most int) (nodes, helped int) {
	var rooms []*room
	for _, pod := range pods {
		if len(left([]*corev1.Pod{pod}, rooms)) == 0 {
			helped++
			continue
		}
		fresh := roomOf(template, nil)
		if len(rooms) < most && fresh.fits(pod) {
			fresh.take(pod)
			rooms = append(rooms, fresh)
			helped++
		}
	}
	return len(rooms), helped
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

// upcoming is the number of nodes that were asked for and are not there, as far as this process has asked for them.
func (l *Loop) upcoming(s *State, group string) int {
	if _, asked := l.scaleUps[group]; !asked || time.Now().Before(l.backoff[group]) {
		return 0
	}
	return max(0, s.target[group]-s.ready(group))
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
