"""Carriers move bytes between ranks. Each is a `Carrier`; plugins add more by the hook
`plugrad_carriers`."""
