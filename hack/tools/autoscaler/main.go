// A stand-in for the Cluster Autoscaler where its binary can't be had: it plays the calls of one loop after the other,
// in the order and with the caches, fake nodes, taints and evictions that are documented of it, against a real API
// server and a provider. How it decides is simpler than the original: resources and node selectors, first fit.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Settings are flags of the Cluster Autoscaler, under their names.
type Settings struct {
	provider, cloudConfig, kubeconfig, discovery string
	expander                                     string
	balance                                      bool
	parallelism                                  int
	scan, unneeded, provision, backoff, afterAdd time.Duration
}

func settings() Settings {
	var s Settings
	flag.StringVar(&s.provider, "cloud-provider", "externalgrpc", "externalgrpc or clusterapi")
	flag.StringVar(&s.cloudConfig, "cloud-config", "", "where the gRPC server is")
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "of the cluster")
	flag.StringVar(&s.discovery, "node-group-auto-discovery", "", "clusterapi:namespace=…")
	flag.DurationVar(&s.scan, "scan-interval", 10*time.Second, "between loops")
	flag.DurationVar(&s.unneeded, "scale-down-unneeded-time", 10*time.Minute, "before a node goes")
	flag.DurationVar(&s.provision, "max-node-provision-time", 15*time.Minute, "for an instance to register")
	flag.DurationVar(&s.backoff, "initial-node-group-backoff-duration", 5*time.Minute, "of a group that failed")
	flag.DurationVar(&s.afterAdd, "scale-down-delay-after-add", 10*time.Minute, "without scale-down after a scale-up")
	flag.StringVar(&s.expander, "expander", "least-nodes", "price, or by the number of nodes")
	flag.BoolVar(&s.balance, "balance-similar-node-groups", false, "share new nodes out among similar groups")
	flag.IntVar(&s.parallelism, "max-scale-down-parallelism", 10, "deletions under way")
	for _, name := range []string{
		"leader-elect", "namespace", "scale-down-unready-time", "node-delete-delay-after-taint",
		"unremovable-node-recheck-timeout", "new-pod-scale-up-delay", "v", "kube-client-qps",
		"kube-client-burst", "address", "skip-nodes-with-system-pods", "skip-nodes-with-local-storage",
	} {
		flag.String(name, "", "accepted, and without effect here")
	}
	flag.Parse()
	return s
}

func main() {
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, settings()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s Settings) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	cluster, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	cloud, err := cloudOf(s, config)
	if err != nil {
		return err
	}
	loop := newLoop(cluster, cloud, s)
	loop.untaint(ctx)
	for {
		if err := loop.once(ctx); err != nil && ctx.Err() == nil {
			log.Printf("loop aborted: %v", err)
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			return cloud.Cleanup(last)
		case <-time.After(s.scan):
		}
	}
}

func cloudOf(s Settings, config *rest.Config) (Cloud, error) {
	switch s.provider {
	case "externalgrpc":
		return newGrpcCloud(s.cloudConfig)
	case "clusterapi":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return newCapiCloud(client, s.discovery), nil
	}
	return nil, fmt.Errorf("no provider %q", s.provider)
}
