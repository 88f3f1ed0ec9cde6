package cli

import "github.com/gatehouse-dev/gatehouse/internal/term"

// notifyDeviceCmd groups the commands about one's own devices.
type notifyDeviceCmd struct {
	List   deviceListCmd   `cmd:"" help:"List your devices."`
	Test   deviceTestCmd   `cmd:"" help:"Send a test to one of your devices."`
	Remove deviceRemoveCmd `cmd:"" help:"Remove one of your devices."`
}

// deviceListCmd lists devices.
type deviceListCmd struct{}

func (*deviceListCmd) Help() string {
	return `
The browsers in which you get notifications by web push, the newest first. Add one in
the console, under Settings, Notifications. Piped output has these columns: id, device,
push service, added, last sent, last error.

Examples:

    gatehouse notify device list
`
}

func (*deviceListCmd) Run(g *globals, api service) error {
	list, err := api.ListDevices(g.Ctx)
	return showPage(g, pageOf(list), err, "No devices.", func() *term.Table {
		t := &term.Table{
			Header: []string{"ID", "DEVICE", "PUSH SERVICE", "ADDED", "LAST SENT", "ERROR"}, Wide: 5, Drop: []int{2, 3},
		}
		for _, d := range list {
			last := ""
			if d.LastSentAt != nil {
				last = g.At(*d.LastSentAt)
			}
			t.Add(d.ID, d.Label, d.Service, g.At(d.CreatedAt), last, d.LastError)
		}
		return t
	})
}

// deviceTestCmd tests a device.
type deviceTestCmd struct {
	ID string `arg:"" help:"The device, such as dev_01993b7e."`
}

func (*deviceTestCmd) Help() string {
	return `
Tells what the push service answered. "accepted" does not say that the device shows it.

Examples:

    gatehouse notify device test dev_01993b7e
`
}

func (c *deviceTestCmd) Run(g *globals, api service) error {
	n, err := api.TestDevice(g.Ctx, c.ID)
	return printTest(g, n, err)
}

// deviceRemoveCmd removes a device.
type deviceRemoveCmd struct {
	ID string `arg:"" help:"The device, such as dev_01993b7e."`
}

func (*deviceRemoveCmd) Help() string {
	return `
It gets no more notifications, such as a phone that you have lost.

Examples:

    gatehouse notify device remove dev_01993b7e
`
}

func (c *deviceRemoveCmd) Run(g *globals, api service) error {
	if err := api.RemoveDevice(g.Ctx, c.ID); err != nil {
		return err
	}
	return show(g, map[string]any{"id": c.ID, "removed": true}, nil, func() *term.Table {
		return term.Row([]string{"ID", "RESULT"}, c.ID, "removed")
	})
}
