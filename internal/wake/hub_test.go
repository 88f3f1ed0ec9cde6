package wake

import (
	"sync"
	"testing"
)

func waiting(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestHubWakesSubscribersOfTheTopic(t *testing.T) {
	t.Parallel()
	var h Hub
	push, endPush := h.Subscribe("push")
	defer endPush()
	both, endBoth := h.Subscribe("push", "act_1")
	defer endBoth()

	h.Notify("nobody")
	if waiting(push) || waiting(both) {
		t.Fatal("a hint on another topic woke a subscriber")
	}
	h.Notify("act_1")
	if waiting(push) {
		t.Error("act_1 woke the subscriber of push")
	}
	if !waiting(both) {
		t.Error("act_1 did not wake its subscriber")
	}
	h.Notify("push")
	if !waiting(push) || !waiting(both) {
		t.Error("push did not wake both of its subscribers")
	}
}

func TestHubCoalescesAndNeverBlocks(t *testing.T) {
	t.Parallel()
	var h Hub
	c, end := h.Subscribe("push")
	defer end()
	for range 1000 {
		h.Notify("push") // would hang here if it blocked
	}
	if !waiting(c) {
		t.Fatal("no hint")
	}
	if waiting(c) {
		t.Fatal("a thousand hints before the first receive are one")
	}
	h.Notify("push")
	if !waiting(c) {
		t.Fatal("a hint after the receive is a new one")
	}
}

func TestHubForgetsEndedSubscriptions(t *testing.T) {
	t.Parallel()
	var h Hub
	c, end := h.Subscribe("push", "act_1")
	end()
	end()
	h.Notify("push")
	h.Notify("act_1")
	if waiting(c) {
		t.Error("an ended subscription was woken")
	}
	if len(h.subs) != 0 {
		t.Errorf("topics left behind: %v", h.subs)
	}
}

func TestHubUnderConcurrency(t *testing.T) {
	t.Parallel()
	var h Hub
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				c, end := h.Subscribe("push")
				h.Notify("push")
				<-c
				end()
			}
		})
	}
	wg.Wait()
	if len(h.subs) != 0 {
		t.Errorf("topics left behind: %v", h.subs)
	}
}
