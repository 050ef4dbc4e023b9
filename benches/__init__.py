"""How fast is it, and how near to what the machine allows?"""
