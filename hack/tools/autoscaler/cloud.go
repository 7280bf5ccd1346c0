package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
)

var errNoPrices = errors.New("this provider knows no prices")

// The states of an instance, under the numbers of the wire.
const (
	running  = 1
	creating = 2
	deleting = 3
)

// Instance is what a group says of one of its members; errorCode "" is no error.
type Instance struct {
	id        string
	state     int32
	errorCode string
}

// Group is a node group as it was told in this loop.
type Group struct {
	id       string
	min, max int
}

// Cloud is the part of a Cluster Autoscaler's provider that this program asks for, in the provider's own way of asking.
type Cloud interface {
	Refresh(ctx context.Context) error
	NodeGroups(ctx context.Context) ([]Group, error)
	NodeGroupForNode(ctx context.Context, node *corev1.Node) (string, error)
	TargetSize(ctx context.Context, group string) (int, error)
	Nodes(ctx context.Context, group string) ([]Instance, error)
	Template(ctx context.Context, group string) (*corev1.Node, error)
	IncreaseSize(ctx context.Context, group string, delta int) error
	DecreaseTargetSize(ctx context.Context, group string, delta int) error
	DeleteNodes(ctx context.Context, group string, nodes []*corev1.Node) error
	Options(ctx context.Context, group string) error
	GPU(ctx context.Context) error
	NodePrice(ctx context.Context, node *corev1.Node) (float64, error)
	PodPrice(ctx context.Context, pod *corev1.Pod) (float64, error)
	Cleanup(ctx context.Context) error
}

// unasked is what a provider has that is asked within the Cluster Autoscaler alone, and knows no prices.
type unasked struct{}

func (unasked) Options(context.Context, string) error { return nil }
func (unasked) GPU(context.Context) error             { return nil }
func (unasked) Cleanup(context.Context) error         { return nil }
func (unasked) NodePrice(context.Context, *corev1.Node) (float64, error) {
	return 0, errNoPrices
}
func (unasked) PodPrice(context.Context, *corev1.Pod) (float64, error) {
	return 0, errNoPrices
}
