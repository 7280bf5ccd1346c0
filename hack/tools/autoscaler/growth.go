package main

import (
	"context"
	"fmt"
	"log"
	"math/rand"
	"time"

	corev1 "k8s.io/api/core/v1"
)

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

// upcoming is the number of nodes that were asked for and are not there, as far as this process has asked for them.
func (l *Loop) upcoming(s *State, group string) int {
	if _, asked := l.scaleUps[group]; !asked || time.Now().Before(l.backoff[group]) {
		return 0
	}
	return max(0, s.target[group]-s.ready(group))
}
