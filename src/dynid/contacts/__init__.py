"""External wrenches on a robot: estimation at a frame, detection and localisation of contacts, push or payload."""
from dynid.contacts.contact_free_errors import FreeMotion, free_motion
from dynid.contacts.contacts import Contact, ContactLog, find_contacts
from dynid.contacts.external_wrench import ExternalWrench, WrenchRows

__all__ = ["Contact", "ContactLog", "ExternalWrench", "FreeMotion", "WrenchRows", "find_contacts", "free_motion"]
