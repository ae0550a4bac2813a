"""Rollouts played ahead: the manager's own decision, a forecast of the StatefulSet controller, an order of events."""
