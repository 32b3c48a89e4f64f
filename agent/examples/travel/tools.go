package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

type flight struct {
	Flight string  `json:"flight"`
	Price  float64 `json:"price"`
	Stops  int     `json:"stops"`
}

// flights returns the timetable.
func flights(to string) []flight {
	return map[string][]flight{
		"Lisbon": {{"TP 571", 249, 0}, {"LH 1166", 189, 1}},
		"Porto":  {{"TP 544", 79, 0}},
		"Tokyo":  {{"NH 204", 940, 0}, {"AY 073", 610, 1}},
	}[to]
}

// onSale reports whether a flight is available at a price, because the approved price must be
// the price that is paid.
func onSale(want order) bool {
	for _, city := range []string{"Lisbon", "Porto", "Tokyo"} {
		if slices.ContainsFunc(flights(city), func(f flight) bool {
			return f.Flight == want.Flight && f.Price == want.Price
		}) {
			return true
		}
	}

	return false
}

func searchFlights() agent.Tool {
	schema := json.RawMessage(
		`{"type":"object","properties":{"to":{"type":"string"}},"required":["to"],"additionalProperties":false}`,
	)
	return agent.NewFunction("search_flights", "Lists the flights to a city with their prices in EUR.", schema,
		func(_ context.Context, arguments json.RawMessage) (any, error) {
			var of struct {
				To string `json:"to"`
			}
			if err := json.Unmarshal(arguments, &of); err != nil {
				return nil, fmt.Errorf("read the arguments: %w", err)
			}
			return append([]flight{}, flights(of.To)...), nil // [] instead of null if there are none
		})
}

// bookFlight buys a seat. When it may run, it asks for the passenger. The name goes from the
// traveller to the airline, and never to the model.
type bookFlight struct{ ledger string }

type order struct {
	Flight string  `json:"flight"`
	Price  float64 `json:"price"`
}

// booking is the result for the model.
type booking struct {
	Booked  string  `json:"booked,omitempty"`
	Price   float64 `json:"price,omitempty"`
	Problem string  `json:"problem,omitempty"`
}

const passengerSchema = `{"type":"object","properties":{"name":{"type":"string","minLength":2,"maxLength":60}},` +
	`"required":["name"],"additionalProperties":false}`

// Definition describes the tool to the model.
func (*bookFlight) Definition() agent.Definition {
	return agent.Definition{
		Name:        "book_flight",
		Description: "Buys a seat on a flight at the price that the search gave.",
		Schema: json.RawMessage(
			`{"type":"object","properties":{"flight":{"type":"string"},"price":{"type":"number"}},` +
				`"required":["flight","price"],"additionalProperties":false}`,
		),
	}
}

// Invoke runs when the booking may run: either no approval was needed, or it was given.
func (*bookFlight) Invoke(_ context.Context, call *content.FunctionCall) (any, error) {
	want, err := orderOf(call)
	if err != nil {
		return nil, err
	}
	if !onSale(want) {
		return booking{Problem: "there is no such flight at that price"}, nil
	}
	return nil, &agent.Suspend{Requests: []content.InputRequest{&content.StructuredInputRequest{
		RequestID: "passenger",
		Text:      "Who flies with " + want.Flight + "?",
		Schema:    json.RawMessage(passengerSchema),
	}}}
}

// Resume continues with the passenger's name, which has been checked against the schema.
func (b *bookFlight) Resume(
	_ context.Context, call *content.FunctionCall, _ json.RawMessage, answers []content.InputResponse,
) (any, error) {
	want, err := orderOf(call)
	if err != nil {
		return nil, err
	}
	given, ok := answers[0].(*content.StructuredInputResponse)
	if !ok || given.Declined {
		return booking{Problem: "the traveller did not say who flies"}, nil
	}
	if err := b.write(want, given.Data); err != nil {
		return nil, err
	}
	return booking{Booked: want.Flight, Price: want.Price}, nil
}

func orderOf(call *content.FunctionCall) (order, error) {
	var want order
	if err := json.Unmarshal(call.Arguments, &want); err != nil {
		return order{}, fmt.Errorf("read the arguments: %w", err)
	}
	return want, nil
}

// write makes the purchase. It adds a line to a file.
func (b *bookFlight) write(want order, passenger json.RawMessage) error {
	line, err := json.Marshal(struct {
		order
		Passenger json.RawMessage `json:"passenger"`
	}{want, passenger})
	if err != nil {
		return fmt.Errorf("write the booking: %w", err)
	}
	f, err := os.OpenFile(b.ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the booking: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
