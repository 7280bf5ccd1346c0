package main

import (
	"context"
	"log"
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
}

func newLoop(cluster kubernetes.Interface, cloud Cloud, settings Settings) *Loop {
	return &Loop{
		cluster: cluster, cloud: cloud, settings: settings,
		backoff: map[string]time.Time{}, firstSeen: map[string]time.Time{},
		unneeded: map[string]time.Time{}, wrongSince: map[string]time.Time{},
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
	l.deleteUnregistered(ctx, state)
	if l.deleteFailed(ctx, state) || l.fixSizes(ctx, state) {
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
	if err := l.cloud.Refresh(ctx); err != nil {
		return nil, err
	}
	if state.groups, err = l.cloud.NodeGroups(ctx); err != nil {
		return nil, err
	}
	for _, node := range state.nodes {
		if state.group[node.Name], err = l.cloud.NodeGroupForNode(ctx, node); err != nil {
			log.Printf("NodeGroupForNode %s: %v", node.Name, err)
		}
	}
	for _, group := range state.groups {
		if state.target[group.id], err = l.cloud.TargetSize(ctx, group.id); err != nil {
			return nil, err
		}
		if state.instances[group.id], err = l.cloud.Nodes(ctx, group.id); err != nil {
			return nil, err
		}
	}
	return state, nil
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
	return err == nil
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
