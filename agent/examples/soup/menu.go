package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/agent"
)

// menu returns the two tools. Reading a menu is harmless, but RequireApproval makes every call
// need approval.
func menu() []agent.Tool {
	specials := agent.NewFunction(
		"get_specials",
		"Returns today's specials.",
		json.RawMessage(`{"type":"object","properties":{}}`),
		func(context.Context, json.RawMessage) (any, error) {
			return specials{Soup: "Clam Chowder", Salad: "Cobb Salad", Drink: "Chai Tea"}, nil
		},
	)
	price := agent.NewFunction(
		"get_item_price",
		"Returns the price of an item of the menu, such as the special soup.",
		json.RawMessage(
			`{"type":"object","properties":{"item":{"type":"string"}},"required":["item"],"additionalProperties":false}`,
		),
		priceOf,
	)
	return []agent.Tool{agent.RequireApproval(specials), agent.RequireApproval(price)}
}

type specials struct {
	Soup  string `json:"soup"`
	Salad string `json:"salad"`
	Drink string `json:"drink"`
}

type price struct {
	Item  string `json:"item"`
	Price string `json:"price"`
}

func priceOf(_ context.Context, arguments json.RawMessage) (any, error) {
	var of struct {
		Item string `json:"item"`
	}
	if err := json.Unmarshal(arguments, &of); err != nil {
		return nil, fmt.Errorf("read the arguments: %w", err)
	}
	return price{of.Item, "$9.99"}, nil // every item has this price
}
