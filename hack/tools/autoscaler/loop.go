package main

import (
	"context"
	"log"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const fakeReason = "k8s.io/cluster-autoscaler/fake-node-reason"

// Loop remembers what the Cluster Autoscaler keeps in memory between loops.
type Loop struct {
	cluster     kubernetes.Interface
	cloud       Cloud
	settings    Settings
	backoff     map[string]time.Time
	firstSeen   map[string]time.Time
	unneeded    map[string]time.Time
	wrongSince  map[string]time.Time
	lastScaleUp time.Time
	scaleUps    map[string]scaleUp
	cached      map[string]instances
	known       map[string]bool // nodes that an earlier loop has seen
	deletions   chan struct{}
	lock        sync.Mutex
	stale       []string // groups whose instances are to be asked for again; by lock
}

// scaleUp is what was asked for and is not there yet. It is forgotten with this process, as since 1.36.
type scaleUp struct {
	increase int
	deadline time.Time
}

// instances are asked for again after a while, or where it matters.
type instances struct {
	found []Instance
	at    time.Time
}

const instancesKept = 2 * time.Minute

func newLoop(cluster kubernetes.Interface, cloud Cloud, settings Settings) *Loop {
	return &Loop{
		cluster: cluster, cloud: cloud, settings: settings,
		backoff: map[string]time.Time{}, firstSeen: map[string]time.Time{},
		unneeded: map[string]time.Time{}, wrongSince: map[string]time.Time{},
		scaleUps: map[string]scaleUp{}, cached: map[string]instances{},
		deletions: make(chan struct{}, max(1, settings.parallelism)),
	}
}

// State is one loop's view.
type State struct {
	nodes     []*corev1.Node
	pods      []*corev1.Pod
	groups    []Group
	group     map[string]string // of a node
	target    map[string]int
	instances map[string][]Instance
}

func (l *Loop) once(ctx context.Context) error {
	state, err := l.read(ctx)
	if err != nil {
		return err
	}
	l.expireScaleUps(ctx, state)
	l.deleteUnregistered(ctx, state)
	if l.deleteFailed(ctx, state) { // another group is asked in the same loop
		if err := l.measure(ctx, state); err != nil {
			return err
		}
	}
	if l.fixSizes(ctx, state) {
		return nil
	}
	pending := unschedulable(state.pods)
	if len(pending) > 0 {
		return l.scaleUp(ctx, state, pending)
	}
	return l.scaleDown(ctx, state)
}

func (l *Loop) read(ctx context.Context) (*State, error) {
	nodes, err := l.cluster.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := l.cluster.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	state := &State{group: map[string]string{}, target: map[string]int{}, instances: map[string][]Instance{}}
	for i := range nodes.Items {
		state.nodes = append(state.nodes, &nodes.Items[i])
	}
	for i := range pods.Items {
		state.pods = append(state.pods, &pods.Items[i])
	}
	l.meet(ctx, state.nodes)
	if err := l.cloud.Refresh(ctx); err != nil {
		return nil, err
	}
	if err := l.cloud.GPU(ctx); err != nil {
		log.Printf("GPU: %v", err)
	}
	if state.groups, err = l.cloud.NodeGroups(ctx); err != nil {
		return nil, err
	}
	for _, node := range state.nodes {
		if state.group[node.Name], err = l.cloud.NodeGroupForNode(ctx, node); err != nil {
			log.Printf("NodeGroupForNode %s: %v", node.Name, err)
		}
	}
	l.first(ctx, state)
	l.options(ctx, state)
	return state, l.measure(ctx, state)
}

// meet asks about new nodes before the providers are refreshed.
func (l *Loop) meet(ctx context.Context, nodes []*corev1.Node) {
	for _, node := range nodes {
		if l.known[node.Name] {
			continue
		}
		if _, err := l.cloud.NodeGroupForNode(ctx, node); err != nil {
			log.Printf("NodeGroupForNode %s, which is new: %v", node.Name, err)
		}
	}
}

// first asks for the template of each node's group in the first loop, and takes down who is known.
func (l *Loop) first(ctx context.Context, s *State) {
	for _, node := range s.nodes {
		if group := s.group[node.Name]; l.known == nil && group != "" {
			if _, err := l.cloud.Template(ctx, group); err != nil {
				log.Printf("template of %s: %v", group, err)
			}
		}
	}
	l.known = map[string]bool{}
	for _, node := range s.nodes {
		l.known[node.Name] = true
	}
}

// options are asked for four times for each node in each loop, and never kept.
func (l *Loop) options(ctx context.Context, s *State) {
	for range 4 {
		for _, node := range s.nodes {
			if group := s.group[node.Name]; group != "" {
				if err := l.cloud.Options(ctx, group); err != nil {
					log.Printf("NodeGroupGetOptions %s: %v", group, err)
				}
			}
		}
	}
}

// measure asks for sizes, and for instances where what is known is old or a scale-up is under way.
func (l *Loop) measure(ctx context.Context, s *State) error {
	l.lock.Lock()
	for _, group := range l.stale {
		delete(l.cached, group)
	}
	l.stale = nil
	l.lock.Unlock()
	var err error
	for _, group := range s.groups {
		if s.target[group.id], err = l.cloud.TargetSize(ctx, group.id); err != nil {
			return err
		}
		kept, ok := l.cached[group.id]
		_, growing := l.scaleUps[group.id]
		if !ok || growing || time.Since(kept.at) > instancesKept {
			found, err := l.cloud.Nodes(ctx, group.id)
			if err != nil {
				return err
			}
			kept = instances{found, time.Now()}
			l.cached[group.id] = kept
		}
		s.instances[group.id] = kept.found
	}
	return nil
}

// expireScaleUps ends those that are there, and takes back those that took too long: first the size is lowered by what
// was asked for, then its instances are deleted, of which the provider may have chosen the same.
func (l *Loop) expireScaleUps(ctx context.Context, s *State) {
	for group, asked := range l.scaleUps {
		if s.target[group] <= s.ready(group) {
			delete(l.scaleUps, group)
			continue
		}
		if time.Now().Before(asked.deadline) {
			continue
		}
		delete(l.scaleUps, group)
		l.backoff[group] = time.Now().Add(l.settings.backoff)
		err := l.cloud.DecreaseTargetSize(ctx, group, -asked.increase)
		log.Printf("DecreaseTargetSize %s %d, which took too long: %v", group, -asked.increase, err)
		for _, each := range s.instances[group] {
			if each.state == creating && !s.registered(each.id) {
				l.delete(ctx, group, fake(each.id, "unregistered"))
			}
		}
	}
}

// ready counts the nodes of a group that take pods.
func (s *State) ready(group string) int {
	count := 0
	for _, node := range s.nodes {
		if s.group[node.Name] == group && ready(node) && !tainted(node) {
			count++
		}
	}
	return count
}

func (s *State) registered(id string) bool {
	for _, node := range s.nodes {
		if node.Spec.ProviderID == id {
			return true
		}
	}
	return false
}

// deleteUnregistered gives up instances that became no node in time.
func (l *Loop) deleteUnregistered(ctx context.Context, s *State) {
	seen := map[string]time.Time{}
	for _, group := range s.groups {
		for _, each := range s.instances[group.id] {
			if s.registered(each.id) || each.state == deleting || each.errorCode != "" {
				continue
			}
			seen[each.id] = earlier(l.firstSeen[each.id], time.Now())
			if time.Since(seen[each.id]) > l.settings.provision && s.target[group.id] > group.min {
				log.Printf("instance %s of %s is no node in time; backing off", each.id, group.id)
				l.backoff[group.id] = time.Now().Add(l.settings.backoff)
				l.delete(ctx, group.id, fake(each.id, "unregistered"))
			}
		}
	}
	l.firstSeen = seen
}

// deleteFailed gives up instances that can't be created, and leaves their group alone for a while.
func (l *Loop) deleteFailed(ctx context.Context, s *State) bool {
	acted := false
	for _, group := range s.groups {
		var nodes []*corev1.Node
		for _, each := range s.instances[group.id] {
			if each.state == creating && each.errorCode != "" {
				nodes = append(nodes, fake(each.id, "create-error"))
			}
		}
		if len(nodes) > 0 {
			log.Printf("%d instances of %s can't be created; backing off", len(nodes), group.id)
			l.backoff[group.id] = time.Now().Add(l.settings.backoff)
			acted = l.delete(ctx, group.id, nodes...) || acted
		}
	}
	return acted
}

// fixSizes lowers targets for which there has been nothing for too long.
func (l *Loop) fixSizes(ctx context.Context, s *State) bool {
	fixed := false
	for _, group := range s.groups {
		missing := s.target[group.id]
		for _, each := range s.instances[group.id] {
			if each.state != deleting {
				missing--
			}
		}
		if missing <= 0 {
			delete(l.wrongSince, group.id)
			continue
		}
		l.wrongSince[group.id] = earlier(l.wrongSince[group.id], time.Now())
		if time.Since(l.wrongSince[group.id]) > l.settings.provision {
			err := l.cloud.DecreaseTargetSize(ctx, group.id, -missing)
			log.Printf("DecreaseTargetSize %s %d: %v", group.id, -missing, err)
			fixed = fixed || err == nil
		}
	}
	return fixed
}

func (l *Loop) delete(ctx context.Context, group string, nodes ...*corev1.Node) bool {
	err := l.cloud.DeleteNodes(ctx, group, nodes)
	log.Printf("DeleteNodes %s %d: %v", group, len(nodes), err)
	if err != nil || nodes[0].Annotations[fakeReason] != "" {
		l.forget(group)
	}
	return err == nil
}

// forget what instances a group has; deletions in the background say so too.
func (l *Loop) forget(group string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.stale = append(l.stale, group)
}

// fake is what the Cluster Autoscaler passes for an instance that is no node.
func fake(id, reason string) *corev1.Node {
	meta := metav1.ObjectMeta{Name: id, Annotations: map[string]string{fakeReason: reason}}
	return &corev1.Node{ObjectMeta: meta, Spec: corev1.NodeSpec{ProviderID: id}}
}

func earlier(known, now time.Time) time.Time {
	if known.IsZero() {
		return now
	}
	return known
}
